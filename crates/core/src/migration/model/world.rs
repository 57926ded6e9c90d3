//! Both nodes, the coordinator, the messages between them, and a client that watches.

use super::Count;
use super::destination_node::DestinationNode;
use super::source_node::SourceNode;
use crate::migration::source::Frozen;
use crate::migration::{
    Answer, DestinationOrder, DestinationReport, Facts, Outcome, Record, SourceOrder, SourceReport, Step,
    Terms, orders, plan,
};
use jiff::{SignedDuration, Timestamp};
use portolan_api::Duration;
use portolan_api::livemigration::MigrationOrder;

/// Where a party dies in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    Never,
    BeforeWrite,
    InAction(usize),
    BeforeReport,
}

/// What happens next.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    Coordinator(Crash),
    Source(Crash),
    Destination(Crash),
    /// One of the messages on their way arrives, as many as there are kinds; `keep` leaves it there to arrive again.
    Deliver {
        index: usize,
        keep: bool,
    },
    /// The newest message of each kind arrives, and nothing is left on its way.
    DeliverAll,
    Lose {
        index: usize,
    },
    /// An earlier leader repeats its orders.
    EarlierOrders {
        index: usize,
    },
    Pass {
        milliseconds: i64,
    },
    Abort,
    CheckpointFails(bool),
    RestoreFails(bool),
    Spoil,
    SourceContainerDies,
    SourceThawedByOthers,
    SourceReboots,
    SourceApiIsAway(bool),
    SourceRefuses(bool),
    DestinationRefuses(bool),
    TargetDies,
    /// A container has waited for longer than its kubelet lets it.
    TargetStopsWaiting,
}

#[derive(Clone, Debug)]
enum Message {
    ToSource(SourceOrder),
    ToDestination(DestinationOrder),
    FromSource(SourceReport),
    FromDestination(DestinationReport),
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) record: Record,
    earlier: Vec<Record>,
    facts: Facts,
    messages: Vec<Message>,
    pub(crate) source: SourceNode,
    pub(crate) destination: DestinationNode,
    answered: Count,
}

impl World {
    pub(crate) fn new(order: MigrationOrder) -> Self {
        let now = Timestamp::UNIX_EPOCH;
        let terms = Terms { order, timeout: Duration::from_secs(20), max_downtime: Duration::from_secs(5) };
        let facts = Facts { source: Answer::Silent, destination: Answer::Silent, abort_requested: false };
        Self {
            now,
            record: Record::new("m".to_owned(), terms, 1, now),
            earlier: Vec::new(),
            facts,
            messages: Vec::new(),
            source: SourceNode::new(),
            destination: DestinationNode::new(),
            answered: (1, 0),
        }
    }

    pub(crate) fn happen(&mut self, what: &Happening) {
        match what {
            Happening::Coordinator(crash) => self.coordinator(*crash),
            Happening::Source(crash) => {
                self.source.sent &= self.destination.data.is_some_and(|(_, right)| right);
                let (report, sends) = self.source.turn(*crash, self.now);
                self.messages.extend(report.map(Message::FromSource));
                if let Some((count, true)) = self.source.checkpoint
                    && sends
                {
                    self.source.sent = self.destination.take(count) && *crash == Crash::Never;
                }
            }
            Happening::Destination(crash) => {
                let report = self.destination.turn(*crash, self.now);
                self.messages.extend(report.map(Message::FromDestination));
            }
            Happening::Deliver { index, keep } => {
                if !self.messages.is_empty() {
                    let index = index % self.messages.len();
                    let message = self.messages[index].clone();
                    if !keep {
                        self.messages.remove(index);
                    }
                    self.deliver(message);
                }
            }
            Happening::DeliverAll => {
                for message in std::mem::take(&mut self.messages) {
                    self.deliver(message);
                }
            }
            Happening::Lose { index } => {
                if !self.messages.is_empty() {
                    self.messages.remove(index % self.messages.len());
                }
            }
            Happening::EarlierOrders { index } => {
                if !self.earlier.is_empty() {
                    let record = self.earlier[index % self.earlier.len()].clone();
                    self.send_orders(&record);
                }
            }
            Happening::Pass { milliseconds } => {
                let passed = SignedDuration::from_millis(*milliseconds);
                self.now = self.now.checked_add(passed).unwrap_or(self.now);
                self.source.pass();
                self.destination.pass();
            }
            Happening::Abort => self.facts.abort_requested = true,
            Happening::CheckpointFails(fails) => self.source.checkpoint_fails = *fails,
            Happening::RestoreFails(fails) => self.destination.restore_fails = *fails,
            Happening::Spoil => {
                if let Some((_, right)) = &mut self.destination.data {
                    *right = false;
                }
            }
            Happening::SourceContainerDies => self.source.replace(),
            Happening::SourceThawedByOthers => {
                if !self.source.committed {
                    self.source.frozen = Frozen::None;
                }
            }
            Happening::SourceReboots => self.source.reboot(),
            Happening::SourceApiIsAway(away) => self.source.api_is_away = *away,
            Happening::SourceRefuses(refuses) => self.source.refuses = *refuses,
            Happening::DestinationRefuses(refuses) => self.destination.refuses = *refuses,
            Happening::TargetDies => self.destination.die(),
            Happening::TargetStopsWaiting => self.destination.give_up_waiting(),
        }
        self.watch();
    }

    fn coordinator(&mut self, crash: Crash) {
        let plan = plan(&self.record, &self.facts, self.now);
        if crash != Crash::BeforeWrite && plan.record != self.record {
            let text = serde_json::to_string(&plan.record).expect("a record can be written");
            let read = serde_json::from_str(&text).expect("a record can be read");
            self.earlier.push(std::mem::replace(&mut self.record, read));
        }
        if crash == Crash::Never {
            let record = self.record.clone();
            assert_eq!(plan.orders, orders(&record));
            self.send_orders(&record);
        } else {
            self.facts.source = Answer::Silent;
            self.facts.destination = Answer::Silent;
        }
    }

    fn send_orders(&mut self, record: &Record) {
        let orders = orders(record);
        self.messages.extend(orders.source.map(Message::ToSource));
        self.messages.extend(orders.destination.map(Message::ToDestination));
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::ToSource(order) => self.source.inbox = Some(order),
            Message::ToDestination(order) => self.destination.inbox = Some(order),
            Message::FromSource(report) => self.facts.source = Answer::Report(report),
            Message::FromDestination(report) => self.facts.destination = Answer::Report(report),
        }
    }

    /// A client asks the pod wherever it runs. This is where the promises of a migration are checked.
    fn watch(&mut self) {
        assert!(!(self.source.runs() && self.destination.runs()), "two copies run: {self:?}");
        // What the kubelet has started afresh after the commit, before the pod could be marked for deletion, is stopped again:
        // nothing of it goes on anywhere.
        if self.source.runs() && !self.source.afresh {
            assert!(!self.source.committed, "the source runs after the commit: {self:?}");
            self.source.count.1 += 1;
            assert!(self.source.count > self.answered, "the count at the source went back: {self:?}");
            self.answered = self.source.count;
        }
        if self.destination.runs() {
            assert!(self.source.committed, "the destination runs before the commit: {self:?}");
            self.destination.count.1 += 1;
            let next = (self.answered.0, self.answered.1 + 1);
            assert_eq!(self.destination.count, next, "the destination goes on elsewhere: {self:?}");
            self.answered = self.destination.count;
        }
    }

    /// One round in which nothing fails.
    pub(crate) fn round(&mut self) {
        use Happening::{Coordinator, DeliverAll, Destination, Pass, Source};
        for what in [
            Coordinator(Crash::Never),
            DeliverAll,
            Source(Crash::Never),
            Destination(Crash::Never),
            DeliverAll,
            Pass { milliseconds: 20 },
        ] {
            self.happen(&what);
        }
    }

    /// Everything works again until nothing is left to do.
    pub(crate) fn settle(&mut self) {
        self.happen(&Happening::CheckpointFails(false));
        self.happen(&Happening::RestoreFails(false));
        self.happen(&Happening::SourceApiIsAway(false));
        self.happen(&Happening::SourceRefuses(false));
        self.happen(&Happening::DestinationRefuses(false));
        for _ in 0..400 {
            if self.record.step == Step::Done {
                break;
            }
            self.round();
        }
        assert_eq!(self.record.step, Step::Done, "it does not come to an end: {self:?}");
        // What a late order began ends by itself.
        self.happen(&Happening::DeliverAll);
        for milliseconds in [20, 20, 20, 21_000, 20, 20, 20, 20, 20, 20, 20, 20] {
            self.happen(&Happening::Source(Crash::Never));
            self.happen(&Happening::Destination(Crash::Never));
            self.happen(&Happening::Pass { milliseconds });
            self.source.inbox = None;
            self.destination.inbox = None;
        }
    }

    /// The end is as promised.
    pub(crate) fn check_end(&self) {
        let outcome = self.record.outcome;
        let delete_first = self.record.terms.order == MigrationOrder::DeleteFirst;
        match outcome {
            Some(Outcome::Succeeded) => {
                assert!(self.destination.runs() && self.source.gone, "{self:?}");
                assert!(self.destination.committed, "it gets no traffic: {self:?}");
            }
            Some(Outcome::Aborted | Outcome::Failed) => {
                assert_eq!(self.source.frozen, Frozen::None, "{self:?}");
                assert!(
                    self.source.runs() && !self.source.terminating && !self.destination.runs(),
                    "{self:?}"
                );
            }
            Some(Outcome::Lost) => {
                assert!(delete_first && !self.destination.runs() && self.source.gone, "{self:?}");
            }
            None => unreachable!("a migration that is over has an outcome: {self:?}"),
        }
        assert!(self.source.disk.is_none() && self.source.checkpoint.is_none(), "left behind: {self:?}");
        assert!(self.destination.disk.is_none() && self.destination.data.is_none(), "left behind: {self:?}");
    }
}
