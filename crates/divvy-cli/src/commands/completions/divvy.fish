# Completion of divvy for fish, made by `divvy completions fish`.

function __divvy_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] complete-words -- $words[2..-1] "$current" 2>/dev/null)
    switch "$lines[1]"
        case files directories
            # Paths also stand behind @, file: and --flag=.
            set -l start (string match -r '.*[:=@]' -- "$current")
            set -l path (string replace -r '.*[:=@]' '' -- "$current")
            set -l names
            if test "$lines[1]" = files
                set names (__fish_complete_path "$path")
            else
                set names (__fish_complete_directories "$path")
            end
            for name in $names
                printf '%s\n' "$start$name"
            end
        case '*'
            printf '%s\n' $lines[2..-1]
    end
end

complete --command divvy --no-files --keep-order --arguments '(__divvy_candidates)'
