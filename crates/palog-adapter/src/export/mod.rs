//! What every exporter of agent sessions shares: the [`View`] of a log that is written in another form, the [`Losses`] that
//! the other form brings with it, and the [`Mark`] by which what was written can be read back.
//!
//! What a record of a vendor looks like is the adapter's alone.

mod loss;
mod mark;
mod native;
mod note;
mod picture;
mod view;

pub use loss::{Class, Field, Loss, LossPlace, LossReport, Losses};
pub use mark::{CallMark, EndMark, Mark, Moved, Synthesized};
pub use native::{Destination, ExportError, Kept, call_name, kept_sources, name_uuid, sources_beside};
pub use note::note;
pub use picture::Picture;
pub use view::{Counts, Cue, Ended, Response, Step, View, message};
