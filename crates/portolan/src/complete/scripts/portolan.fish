# Completion of portolan for fish.

function __portolan_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l word (commandline --current-token --cut-at-cursor)
    PORTOLAN_COMPLETE=fish @PROGRAM@ -- $words "$word" 2>/dev/null </dev/null
end

complete --command portolan --no-files --arguments '(__portolan_complete)'
complete --command kubectl-portolan --no-files --arguments '(__portolan_complete)'
