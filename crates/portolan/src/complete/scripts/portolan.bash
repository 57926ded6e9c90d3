# Completion of portolan for bash.

_portolan() {
    local candidate
    COMPREPLY=()
    while IFS= read -r candidate; do
        COMPREPLY+=("$candidate")
    done < <(PORTOLAN_COMPLETE=bash @PROGRAM@ -- "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null </dev/null)
    if [[ "${COMPREPLY[0]-}" == *[=/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

complete -F _portolan portolan kubectl-portolan
