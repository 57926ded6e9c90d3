//! A rush hour in virtual time: the autoscaler, a burst to a cloud cluster, and the way home.

use super::show;
use crate::failure::Failure;
use portolan_simulator::{Options, Record, Series, load, shipped, simulate};
use tokio::sync::oneshot;

/// The scenario that is played.
const SCENARIO: &str = "rush-hour";

/// How wide a curve is.
const COLUMNS: usize = 50;

/// A rush hour that is being played, beside the rest of the story.
pub(super) struct RushHour(oneshot::Receiver<Result<Record, Failure>>);

/// Begins to play. It has clusters of its own, and time that passes as fast as the machine can; nobody waits for its thread if the
/// demo ends before it.
pub(super) fn begin() -> RushHour {
    let (done, waits) = oneshot::channel();
    std::thread::spawn(move || _ = done.send(play()));
    RushHour(waits)
}

fn play() -> Result<Record, Failure> {
    let text = shipped().iter().find(|each| each.name == SCENARIO).map_or("", |each| each.text);
    let scenario = load(SCENARIO, text, None).map_err(|error| Failure::other(&error))?;
    let options = Options { label: SCENARIO.to_owned(), ..Options::default() };
    simulate(&scenario, &options, &mut |_, _| ()).map_err(Failure::other)
}

impl RushHour {
    /// Shows what became of it; an error is what did not come true.
    pub(super) async fn tell(self) -> Result<(), Failure> {
        let record = self.0.await.map_err(|_| Failure::other("the rush hour came to no end"))??;
        let series = |name: &str| {
            let missing = || Failure::other(format!("the rush hour has no record of {name}"));
            record.series(name).ok_or_else(missing)
        };
        let clusters = ["edge", "campus", "cloud"];
        let mut ready = Vec::new();
        for cluster in clusters {
            ready.push(series(&format!("workload.shop.ready.{cluster}"))?);
        }
        let most = ready.iter().map(|each| peak(each)).fold(1.0, f64::max);
        let requests = series("traffic.shoppers")?;
        show::curve(
            "requests",
            &curve(requests, peak(requests)),
            &format!("at most {:.0} per second", peak(requests)),
        );
        for (cluster, each) in clusters.iter().zip(&ready) {
            show::curve(cluster, &curve(each, most), &format!("at most {:.0} replicas", peak(each)));
        }
        judge(&record, &ready)?;
        let figure = |name: &str| record.figure(name).unwrap_or_default();
        show::held(&format!(
            "the autoscaler went from 2 to {} replicas, and back to 2",
            figure("peakReady.shop")
        ));
        show::held(&format!(
            "what the sites could not hold burst to a cloud cluster made for it: {} nodes, the first {}",
            figure("peakCloudNodes").split(' ').next().unwrap_or_default(),
            figure("firstCloudNode")
        ));
        show::held(&format!(
            "all came home, and the cloud cluster was removed {}; it cost {}",
            figure("cloudRemoved"),
            figure("cost")
        ));
        show::held("no ready replica was lost on either way");
        show::say(&format!("Play with it: portolan simulate {SCENARIO} --output-dir figures"));
        Ok(())
    }
}

/// Whether all went as it should.
fn judge(record: &Record, ready: &[&Series]) -> Result<(), Failure> {
    let figure = |name: &str| record.figure(name).unwrap_or_default();
    let last: Vec<f64> = ready.iter().filter_map(|each| each.values.last()).copied().collect();
    let facts = [
        ("the clusters of the shop", figure("order.shop").starts_with("edge, campus, cloud")),
        ("ready replicas that were lost", figure("dip.shop") == "0"),
        ("the removal of the cloud cluster", figure("cloudRemoved").starts_with("at ")),
        ("the replicas at the end", last == [2.0, 0.0, 0.0]),
    ];
    match facts.iter().find(|(_, holds)| !holds) {
        None => Ok(()),
        Some((what, _)) => Err(Failure::other(format!(
            "the rush hour did not go as it should: {what} ({:?}, at the end {last:?})",
            record.summary.iter().map(|figure| (&figure.name, &figure.value)).collect::<Vec<_>>()
        ))),
    }
}

fn peak(series: &Series) -> f64 {
    series.peak().map_or(0.0, |(_, value)| value)
}

/// A series as a line of blocks of eight heights, up to this number.
fn curve(series: &Series, most: f64) -> String {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let width = series.values.len().div_ceil(COLUMNS).max(1);
    let height = |values: &[f64]| {
        let value = values.iter().copied().fold(0.0, f64::max);
        let eighths = if most > 0.0 { (value / most * 8.0).ceil() } else { 0.0 };
        BLOCKS.get(eighths as usize).copied().unwrap_or('█')
    };
    series.values.chunks(width).map(height).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_a_block_for_the_most_of_each_piece_of_time() {
        let values = (0..100).map(|number| if number == 99 { 8.0 } else { f64::from(number / 50) }).collect();
        let series = Series { name: "x".into(), unit: "replicas", values };
        let line: Vec<char> = curve(&series, 8.0).chars().collect();
        assert_eq!(line.len(), COLUMNS);
        assert_eq!((line[0], line[24], line[25], line[49]), (' ', ' ', '▁', '█'));
    }
}
