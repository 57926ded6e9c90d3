//! The way of a checkpoint from the node where a pod was to the node where it goes on.
//!
//! A [`Sender`] brings the parts of a session, one for every container and volume, directly to the [`Receiver`] of the other node:
//! every part over a connection of its own with mutual TLS 1.3, by which the sender accepts exactly one peer. The receiver has one
//! address for all peers, and knows a peer by the certificate that it shows. It admits sessions of a peer in advance
//! ([`ExpectedSession`]) and takes nothing but their parts, within their limits, from that peer if it has their [`Ticket`].
//!
//! After the handshake a connection goes so:
//!
//! | from | frame | says |
//! |---|---|---|
//! | receiver | ready | the certificate of the sender is accepted |
//! | sender | open | ticket, session and part |
//! | receiver | resume | how many bytes are on disk, their sum, and how often it acknowledges |
//! | sender | begin | where it goes on: there, or at the beginning if its own bytes have another sum |
//! | sender | data, again and again | bytes |
//! | receiver | ack, now and then | how many bytes are on disk |
//! | sender | end | how many bytes the part has, and their sum |
//! | receiver | done | the part is whole, checked, on disk and has its name |
//!
//! Either side says "wait" while it sums what it has; the receiver may say "refused" at any time. A part without its end is never
//! whole: it stays in a file whose name begins with a '.', with which another connection, or another session in the same folder,
//! goes on.

mod backoff;
mod door;
mod error;
mod expected;
mod file;
mod flow;
mod frame;
mod handshake;
mod identity;
mod only_peer;
mod pace;
mod progress;
mod receive;
mod receiver;
mod refusal;
mod send;
mod sender;
mod session;
mod session_state;
mod source;
mod stream;
mod ticket;
mod tls;
mod waiting;

#[cfg(test)]
mod tests;

pub use backoff::Backoff;
pub use error::{Failure, ReceiveError, SendError, SessionError};
pub use expected::{ExpectedSession, ReceivedPart, SessionLimits};
pub use file::FileError;
pub use frame::{FRAME_BYTES, FrameError};
pub use handshake::HandshakeError;
pub use identity::{IdentityError, PeerIdentity};
pub use progress::{PartProgress, Progress};
pub use receiver::{Receiver, ReceiverLimits};
pub use refusal::Refusal;
pub use sender::{OutgoingPart, SendOptions, Sender, SentPart};
pub use session::Session;
pub use source::Source;
pub use stream::{Connect, Connecting, Stream};
pub use ticket::{SessionKey, Ticket};
pub use tls::{Credentials, CredentialsError};
