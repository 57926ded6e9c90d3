#compdef portolan kubectl-portolan
# Completion of portolan for zsh.

_portolan() {
    local line value help
    local -a closed open
    PORTOLAN_COMPLETE=zsh @PROGRAM@ -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null |
        while IFS= read -r line; do
            value="${line%%$'\t'*}"
            help="${line#"$value"}"
            value="${${value//\\/\\\\}//:/\\:}"
            help="${help#$'\t'}"
            if [[ "$value" == *[=/] ]]; then
                open+=("$value${help:+:$help}")
            else
                closed+=("$value${help:+:$help}")
            fi
        done
    (( $#closed )) && _describe -t values 'portolan' closed
    (( $#open )) && _describe -t values 'portolan' open -S ''
    return 0
}

if [[ "${funcstack[1]}" = "_portolan" ]]; then
    _portolan "$@"
else
    compdef _portolan portolan kubectl-portolan
fi
