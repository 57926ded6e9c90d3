//! `portolan demo`: Portolan at work on clusters inside this process.

mod fleet;
mod live;
mod play;
mod rush;
mod show;
mod story;
mod users;

use crate::cli::DemoArgs;
use crate::failure::Failure;
use crate::place::Place;
use crate::signals;
use fleet::Fleet;
use std::io::IsTerminal;
use std::time::Duration;

/// How long the story may take if the user gives no limit: several times what an idle machine needs.
const LIMIT: Duration = Duration::from_secs(180);

/// The story waits for things that take their time, such as a member that falls silent. No machine is faster.
const SHORTEST: Duration = Duration::from_secs(30);

pub(super) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(show(args))
}

async fn show(args: &DemoArgs) -> Result<(), Failure> {
    let limit = args.seconds.map_or(LIMIT, Duration::from_secs);
    if limit < SHORTEST {
        return Err(Failure::input(format!("--seconds {} is too short", limit.as_secs())).hint(format!(
            "the demo takes about {} s: give --seconds 60, or leave it out",
            SHORTEST.as_secs()
        )));
    }
    // Somebody who watches may want to look around afterwards; a script wants to go on.
    let stays = args.seconds.is_none() && std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    // Tokens and keys come from the seed, so it must not be guessed.
    let seed = getrandom::u64()
        .map_err(|error| Failure::other(format!("the system gives no randomness: {error}")))?;
    let rush_hour = rush::begin();
    let told = async {
        let fleet = Fleet::start(seed).await?;
        let place = Place::new("demo", None)?;
        place.write(fleet.served())?;
        show::say(&format!(
            "While it runs, look at it from another terminal:\n   export KUBECONFIG={}; kubectl --context hub get mcd -A",
            place.file().display()
        ));
        story::tell(&fleet, rush_hour).await?;
        if stays {
            play::leave(&fleet, &place).await?;
        }
        Ok::<_, Failure>((fleet, place))
    };
    let (_fleet, _place) = match tokio::time::timeout(limit, told).await {
        Ok(told) => told?,
        Err(_) => {
            return Err(Failure::other(format!("the demo was not done within {} s", limit.as_secs())).hint(
                format!("a slow or busy machine needs longer: give --seconds {}", 2 * limit.as_secs()),
            ));
        }
    };
    if stays {
        signals::stopped().await?;
    }
    Ok(())
}
