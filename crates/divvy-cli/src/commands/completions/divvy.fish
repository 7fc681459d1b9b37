# Completion of divvy for fish, made by `divvy completions fish`.

function __divvy_candidates
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    # What is being typed may be in quotes that are not closed yet.
    set -l current (string unescape -- "$typed")
    set -l lines ($program complete-words -- $words[2..-1] "$current" 2>/dev/null)
    set -l kind (string split \t -- "$lines[1]")
    switch "$kind[1]"
        case files directories
            # Paths also stand behind @, file: and --flag=.
            set -l path (string sub -s (math 1 + (string length -- "$kind[2]")) -- "$current")
            set -l names
            if test "$kind[1]" = files
                set names (__fish_complete_path "$path")
            else
                set names (__fish_complete_directories "$path")
            end
            for name in $names
                printf '%s\n' "$kind[2]$name"
            end
        case '*'
            printf '%s\n' $lines[2..-1]
    end
end

complete --command divvy --no-files --keep-order --arguments '(__divvy_candidates)'
