//! Traces of tasks in CSV: `time,kind,cpu,memory,duration,location`.
//!
//! The first line names the columns. Time and duration are seconds or durations (`90s`, `1h30m`); kind is `job`, `service`, or
//! empty, and then the duration decides; cpu and memory are quantities (`250m`, `512Mi`); location is the name of a cluster.

use super::error::Broken;
use super::tasks::{Task, TaskKind, kind, task_name};
use portolan_api::duration::Duration;
use portolan_core::capacity::milli;
use std::time;

const COLUMNS: &str = "time,kind,cpu,memory,duration,location";

/// Reads a trace; tasks are put in the order of their times.
pub(super) fn read(text: &str, service_from: Duration) -> Result<Vec<Task>, Broken> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let header = lines.next().map(|(_, line)| line).unwrap_or_default();
    if header != COLUMNS {
        return Err(Broken::new("line 1", format!("the columns are {header:?}"))
            .hint(format!("the first line of a trace is {COLUMNS}")));
    }
    let rows = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut tasks =
        rows.map(|(number, line)| row(number, line, service_from)).collect::<Result<Vec<_>, _>>()?;
    tasks.sort_by_key(|task| task.at);
    tasks.iter_mut().enumerate().for_each(|(index, task)| task.name = task_name(index));
    Ok(tasks)
}

fn row(number: usize, line: &str, service_from: Duration) -> Result<Task, Broken> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    let [at, kind_text, cpu, memory, duration, location] = cells.as_slice() else {
        return Err(Broken::new(
            format!("line {number}"),
            format!("it has {} cells, and the trace has 6 columns: {COLUMNS}", cells.len()),
        ));
    };
    let field = |column: &str| format!("line {number}, {column}");
    let duration = length(duration).map_err(|error| Broken::new(field("duration"), error))?;
    let kind = match *kind_text {
        "job" => TaskKind::Job,
        "service" => TaskKind::Service,
        "" => kind(duration, service_from),
        other => {
            return Err(Broken::new(field("kind"), format!("{other:?} is no kind of task"))
                .hint("write job or service, or nothing to have the duration decide"));
        }
    };
    let amount = |column: &str, text: &str| match milli(text) {
        Ok(amount) if amount > 0 => Ok(amount),
        Ok(_) => Err(Broken::new(field(column), format!("{text} is not greater than 0"))),
        Err(error) => Err(Broken::new(field(column), error.to_string())),
    };
    if location.is_empty() {
        return Err(Broken::new(field("location"), "it is empty").hint("name one of the scenario's clusters"));
    }
    Ok(Task {
        name: String::new(),
        at: length(at).map_err(|error| Broken::new(field("time"), error))?,
        kind,
        cpu_milli: amount("cpu", cpu)?,
        memory: amount("memory", memory)? / 1000,
        duration,
        location: (*location).to_owned(),
    })
}

/// Seconds, or a duration.
fn length(text: &str) -> Result<time::Duration, String> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(time::Duration::from_secs(seconds.into()));
    }
    text.parse::<Duration>().map(|duration| duration.0).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Task>, String> {
        super::read(text, Duration::from_secs(3600))
            .map_err(|broken| format!("{}: {}", broken.field, broken.message))
    }

    #[test]
    fn a_trace_is_read_in_the_order_of_time() {
        let text = "time,kind,cpu,memory,duration,location\n90s,,250m,512Mi,2h,lille\n\n# noon\n5,job,1,1Gi,30,nantes\n";
        let tasks = read(text).unwrap();
        assert_eq!(tasks.len(), 2);
        let (first, second) = (&tasks[0], &tasks[1]);
        assert_eq!((first.name.as_str(), first.at.as_secs(), first.kind), ("task-00001", 5, TaskKind::Job));
        assert_eq!((first.cpu_milli, first.memory, first.location.as_str()), (1000, 1 << 30, "nantes"));
        assert_eq!(
            (second.at.as_secs(), second.kind, second.duration.as_secs()),
            (90, TaskKind::Service, 7200)
        );
    }

    #[test]
    fn mistakes_are_named_with_their_line_and_column() {
        for (line, expected) in [
            ("1,job,1,1Gi,30", "line 2: it has 5 cells, and the trace has 6 columns"),
            ("soon,job,1,1Gi,30,a", "line 2, time: \"soon\" is not a duration"),
            ("1,task,1,1Gi,30,a", "line 2, kind: \"task\" is no kind of task"),
            ("1,job,much,1Gi,30,a", "line 2, cpu: "),
            ("1,job,0,1Gi,30,a", "line 2, cpu: 0 is not greater than 0"),
            ("1,job,1,1Gi,-5,a", "line 2, duration: "),
            ("1,job,1,1Gi,30,", "line 2, location: it is empty"),
        ] {
            let error = read(&format!("{COLUMNS}\n{line}\n")).unwrap_err();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
        assert_eq!(read("a,b\n").unwrap_err(), "line 1: the columns are \"a,b\"");
    }
}
