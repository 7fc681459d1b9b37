#compdef divvy
# Completion of divvy for zsh, made by `divvy completions zsh`.

_divvy() {
    local line value about
    local -a lines closed open
    lines=("${(@f)$("${words[1]}" complete-words -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
    case $lines[1] in
        files) compset -P '*[:=@]'; _files; return ;;
        directories) compset -P '*[:=@]'; _files -/; return ;;
    esac
    for line in "${(@)lines[2,-1]}"; do
        value=${line%%$'\t'*}
        about=${line#*$'\t'}
        # What goes on behind it gets no space.
        if [[ $value == *[:/@=] ]]; then
            open+=("${value//:/\\:}:$about")
        else
            closed+=("${value//:/\\:}:$about")
        fi
    done
    (( ${#open} )) && _describe -V divvy open -S ''
    (( ${#closed} )) && _describe -V divvy closed
}

if [ "$funcstack[1]" = "_divvy" ]; then
    _divvy "$@"
else
    compdef _divvy divvy
fi
