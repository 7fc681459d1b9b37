# Completion of divvy for bash, made by `divvy completions bash`.

_divvy() {
    local rest=${COMP_LINE:0:COMP_POINT} trimmed word kind candidate
    local words=() current breaks start=
    # Bash parts words at : = and @, too. What no blank parts is one word.
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        trimmed=${rest#"${rest%%[![:space:]]*}"}
        if [[ ${#words[@]} -eq 0 || $trimmed != "$rest" || -z $trimmed ]]; then
            words+=("")
        fi
        words[${#words[@]}-1]+=${trimmed:0:${#word}}
        rest=${trimmed:${#word}}
    done
    current=${words[${#words[@]}-1]}
    # Readline replaces only what stands behind the last of them.
    breaks=${COMP_WORDBREAKS//[^:=@]/}
    if [[ $breaks ]]; then
        start=${current%"${current##*[$breaks]}"}
    fi
    COMPREPLY=()
    {
        read -r kind _
        while IFS=$'\t' read -r candidate _; do
            COMPREPLY+=("${candidate#"$start"}")
        done
    } < <("${COMP_WORDS[0]/#\~/$HOME}" complete-words -- "${words[@]:1}" 2>/dev/null)
    case $kind in
        files) compopt -o default ;;
        directories) compopt -o dirnames ;;
        *) if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:/@=] ]]; then compopt -o nospace; fi ;;
    esac 2>/dev/null
}

complete -F _divvy divvy
