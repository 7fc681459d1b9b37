#compdef divvy
# Completion of divvy for zsh, made by `divvy completions zsh`.

_divvy() {
    local program=${(Q)words[1]} line value about
    local -a lines closed open
    [[ $program == '~/'* ]] && program=$HOME${program#'~'}
    lines=("${(@f)$("$program" complete-words -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    case $lines[1] in
        files*) compset -P "${(b)lines[1]#*$'\t'}"; _files; return ;;
        directories*) compset -P "${(b)lines[1]#*$'\t'}"; _files -/; return ;;
    esac
    for line in "${(@)lines[2,-1]}"; do
        value=${line%%$'\t'*}
        about=${line#*$'\t'}
        # What goes on behind it gets no space.
        if [[ $value == *[:/@=] ]]; then
            open+=("${value//:/\\:}${about:+:$about}")
        else
            closed+=("${value//:/\\:}${about:+:$about}")
        fi
    done
    _describe -V word closed -- open -S ''
}

if [ "$funcstack[1]" = "_divvy" ]; then
    _divvy "$@"
else
    compdef _divvy divvy
fi
