# Completion of portolan for PowerShell.

Register-ArgumentCompleter -Native -CommandName 'portolan', 'kubectl-portolan' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    # The words as they stand: nothing of the line is run.
    $words = @($commandAst.CommandElements |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
        ForEach-Object {
            if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value }
            else { $_.Extent.Text }
        })
    # An empty argument would be left out by older versions.
    $words += if ($wordToComplete -eq '') { '""' } else { $wordToComplete }

    $env:PORTOLAN_COMPLETE = 'powershell'
    try {
        $found = @(& @PROGRAM@ '--' @words 2>$null)
    }
    finally {
        Remove-Item Env:\PORTOLAN_COMPLETE
    }
    $found | Where-Object { $_ } | ForEach-Object {
        $value, $help = $_ -split "`t", 2
        if (-not $help) { $help = $value }
        [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $help)
    }
}
