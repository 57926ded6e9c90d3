//! Prints the documentation page of the differences between the sandbox and a real API server.

fn main() -> anyhow::Result<()> {
    print!("{}", portolan_tests::conformance::page()?);
    Ok(())
}
