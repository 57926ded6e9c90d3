//! Writes sample figures, as SVG and as PNG of both themes, into the folder that is given.

use portolan_plots::{Axis, Hue, Mark, Panel, Plot, Series, Theme};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: samples FOLDER")?);
    std::fs::create_dir_all(&folder)?;
    let samples = [
        ("requested", requested()),
        ("allocation", allocation()),
        ("replicas", replicas()),
        ("times", times()),
    ];
    for (name, plot) in samples.into_iter().chain([("cost", cost()), ("many", many()), ("empty", empty())]) {
        std::fs::write(folder.join(format!("{name}.svg")), plot.svg())?;
        std::fs::write(folder.join(format!("{name}-light.png")), plot.png(Theme::Light)?)?;
        std::fs::write(folder.join(format!("{name}-dark.png")), plot.png(Theme::Dark)?)?;
    }
    Ok(())
}

const CLUSTERS: [&str; 5] = ["rennes", "nantes", "lille", "grenoble", "luxembourg"];

/// A wave that rises and falls, from parabolas: the samples are the same on every machine too.
fn wave(minute: f64, start: f64, top: f64) -> f64 {
    let t = (minute - start) / 60.0;
    (4.0 * t * (1.0 - t) * top).max(0.0) + (minute * 7.0 + start).rem_euclid(3.0) * top * 0.02
}

fn each_minute(value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    (0..=90).map(f64::from).map(|minute| (minute, value(minute))).collect()
}

fn requested() -> Plot {
    let panel = Panel::new(Axis::minutes("time (minutes)"), Axis::number("CPU requested (cores)"));
    let stacked = CLUSTERS.iter().chain(&["cloud"]).zip(0_u8..).fold(panel, |panel, (name, n)| {
        let points = each_minute(|minute| wave(minute, f64::from(n) * 6.0, 8.0 + f64::from(n)));
        panel.series(Series::new(*name, Mark::StackedArea, points))
    });
    let cloud =
        each_minute(|m| if (30.0..75.0).contains(&m) { 16.0 + (m / 15.0).floor() * 4.0 } else { 0.0 });
    let dashed = Series::new("CPU cores of cloud nodes", Mark::Dashed, cloud).colour(Hue::Neutral);
    Plot::new("CPU requested per cluster")
        .subtitle("1126 workloads, nearest-first")
        .panel(stacked.series(dashed))
}

fn allocation() -> Plot {
    let time = || Axis::minutes("time (minutes)").between(0.0, 90.0);
    let percent = |label: &str| Axis::number(label).between(0.0, 100.0);
    let panel = Panel::new(time(), percent("CPU allocated (%)")).title("Allocation");
    let lines = CLUSTERS.iter().zip(0_u8..).fold(panel, |panel, (name, n)| {
        let points = each_minute(|minute| wave(minute, f64::from(n) * 4.0, 70.0 + 5.0 * f64::from(n)));
        panel.series(Series::new(*name, Mark::Line, points))
    });
    let overall = each_minute(|minute| wave(minute, 8.0, 80.0));
    let overall = Series::new("overall", Mark::Dashed, overall).colour(Hue::Neutral);
    let pending = Series::new("pending pods", Mark::Line, each_minute(|m| wave(m, 20.0, 6.0)));
    let below = Panel::new(time(), Axis::number("pending (% of pods)")).title("Pending pods").series(pending);
    Plot::new("CPU allocation per cluster and overall").panel(lines.series(overall)).panel(below)
}

fn replicas() -> Plot {
    let time = || Axis::minutes("time (minutes)").between(0.0, 90.0);
    let panel = Panel::new(time(), Axis::number("replicas"));
    let steps = CLUSTERS.iter().zip(0_u8..).fold(panel, |panel, (name, n)| {
        let start = f64::from(n) * 15.0;
        let points =
            vec![(0.0, 0.0), (start, 2.0), (start + 5.0, 6.0), (start + 17.0, 3.0), (start + 25.0, 0.0)];
        panel.series(Series::new(*name, Mark::StackedSteps, points))
    });
    let users = vec![(0.0, 10.0), (15.0, 20.0), (30.0, 35.0), (45.0, 15.0), (60.0, 10.0)];
    let users = Series::new("users", Mark::Step, users).colour(Hue::Neutral);
    Plot::new("Replicas follow the users")
        .subtitle("Areas: replicas of the backend per cluster. Line: concurrent users.")
        .panel(steps)
        .panel(Panel::new(time(), Axis::number("concurrent users")).series(users))
}

fn times() -> Plot {
    let names = ["1 cluster", "5 clusters", "10 clusters", "20 clusters nearest-first", "50 clusters"];
    let panel = Panel::new(Axis::categories("size of the fleet", names), Axis::number("deployment time (s)"));
    let grouped =
        [("KubeFed", 1.9), ("mck8s", 1.2), ("Portolan", 0.4)].iter().fold(panel, |panel, (name, base)| {
            let points = (0..5).map(f64::from).map(|n| (n, base * (1.0 + n * n))).collect();
            panel.series(Series::new(*name, Mark::Bars, points))
        });
    Plot::new("Time until a workload runs").panel(grouped)
}

fn cost() -> Plot {
    let points = (0..=90).map(f64::from).map(|minute| (minute, (minute - 25.0).max(0.0) * 0.013)).collect();
    let panel = Panel::new(Axis::minutes("time (minutes)"), Axis::number("cost (€)"));
    Plot::new("Cost of cloud nodes").panel(panel.series(Series::new("", Mark::Line, points)))
}

fn many() -> Plot {
    let axes = || Panel::new(Axis::minutes("time (minutes)"), Axis::number("CPU (cores)"));
    let fill = |panel: Panel, mark: Mark| {
        (0_u8..20).fold(panel, |panel, n| {
            let name = if n == 7 {
                "a-cluster-whose-name-is-far-too-long-for-any-legend".into()
            } else {
                format!("edge-{n}")
            };
            let base = f64::from(n) * if mark == Mark::Line { 2.0 } else { 0.0 };
            panel.series(Series::new(name, mark, each_minute(|minute| base + wave(minute, 5.0, 10.0))))
        })
    };
    Plot::new("Twenty clusters").panel(fill(axes(), Mark::StackedArea)).panel(fill(axes(), Mark::Line))
}

fn empty() -> Plot {
    let nothing = Panel::new(Axis::minutes("time (minutes)"), Axis::number("pods"));
    let gaps = vec![(0.0, f64::NAN), (1.0, 3.0), (2.0, f64::INFINITY), (3.0, -2.0), (4.0, 5.0)];
    let gaps = nothing.clone().series(Series::new("with <gaps> & more", Mark::Line, gaps));
    let title = "A title that goes on and on, since nobody stopped it: the deployment times of all workloads of the \
                 experiment on all clusters, with everything that can be said about them in a title that is too long";
    Plot::new(title).panel(nothing).panel(gaps)
}
