//! Validation: everything that is wrong with a log (spec 01 to 04), in one pass.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::io::{self, Read};

use memchr::memmem::Finder;

use crate::blob::{BlobState, BlobStore};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Place, Severity};
use crate::envelope::{Event, SPEC, Time};
use crate::events::{Data, Kind, RedactionApplied};
use crate::fence::Fence;
use crate::json::Value;
use crate::order::{Finding, Order};
use crate::reader::{Item, Line, Reader};
use crate::reduce::{Key, KeyHasher, KeyMap};

/// What validation may look at beside the log.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options<'o> {
    /// The blobs that belong to the log; `None` = references to blobs are not followed.
    pub blobs: Option<&'o BlobStore>,
}

impl<'o> Options<'o> {
    /// Nothing beside the log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Follows references to blobs into `store`.
    #[must_use]
    pub fn with_blobs(mut self, store: &'o BlobStore) -> Self {
        self.blobs = Some(store);
        self
    }
}

/// What validation found (spec 07, "Validation").
#[derive(Clone, Debug, Default)]
pub struct Validation {
    /// Everything that is wrong, or worth knowing.
    pub diagnostics: Diagnostics,
    /// Id of the log.
    pub log: Option<String>,
    /// Lines that hold an event, repeated ones included.
    pub events: u64,
    /// Bytes of the log, a torn tail not counted.
    pub bytes: u64,
}

impl Validation {
    /// Whether nothing is corrupt or illegal.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.diagnostics.count(Severity::Error) == 0
    }
}

/// Validates a whole stream (spec 07). Memory is about 40 bytes for each event, whatever its length.
///
/// # Errors
/// When the stream cannot be read. Whatever stands in it is no error.
pub fn validate(input: impl Read, options: &Options<'_>) -> io::Result<Validation> {
    let mut reader = Reader::new(input);
    let mut validator = Validator::new(options);
    while let Some(item) = reader.next()? {
        match item {
            Item::Event(event, line) => validator.event(&event, line),
            Item::Fault(fault) => validator.found.diagnostics.push(fault),
        }
    }
    Ok(validator.finish())
}

/// A parent or cause that was not there when it was named.
#[derive(Debug)]
struct Missing {
    names: String,
    /// Code and place of the first event that names it, and how many there are.
    code: Code,
    place: Place,
}

#[derive(Debug)]
struct Validator<'o> {
    found: Validation,
    order: Order,
    fence: Fence,
    ids: HashSet<Key, BuildHasherDefault<KeyHasher>>,
    missing: KeyMap<Missing>,
    latest: Option<Time<'static>>,
    backwards: bool,
    blobs: Option<&'o BlobStore>,
    blob_mark: Finder<'static>,
    sources: HashSet<String>,
    /// Blobs that were looked for.
    checked: HashSet<String>,
    /// Blobs that are not there, unless a redaction took them out.
    absent: Vec<(String, Diagnostic)>,
}

impl<'o> Validator<'o> {
    fn new(options: &Options<'o>) -> Self {
        Validator {
            found: Validation::default(),
            order: Order::default(),
            fence: Fence::default(),
            ids: HashSet::default(),
            missing: KeyMap::default(),
            latest: None,
            backwards: false,
            blobs: options.blobs,
            blob_mark: Finder::new(b"\"$blob\""),
            sources: HashSet::new(),
            checked: HashSet::new(),
            absent: Vec::new(),
        }
    }

    fn event(&mut self, event: &Event<'_>, line: Line<'_>) {
        self.found.events += 1;
        self.found.bytes = line.offset + line.bytes.len() as u64 + 1;
        let admitted = self.order.admit(event, Some(&line));
        for finding in std::mem::take(&mut self.order.findings) {
            self.report(finding.code, finding.severity, finding.rule, finding.why, event, line);
        }
        if !admitted {
            return;
        }
        self.id(event, line);
        self.time(event, line);
        self.source(event, line);
        if self.is_void(event, line) {
            if let Ok(mut data) = event.data() {
                self.blobs(&mut data, event, line);
            }
            return;
        }
        match event.kind() {
            Kind::Unknown(name) | Kind::Vendor(name) if !event.is_ignorable() => {
                let why = format!("{name} must be understood and is not known");
                self.error(Code::UnknownCritical, "R-ENV-012", why, event, line);
            }
            Kind::Unknown(name) => {
                let why = format!("{name} is passed over");
                self.report(Code::UnknownType, Severity::Info, "R-ENV-012", why, event, line);
            }
            Kind::Malformed(name) => self.error(Code::BadType, "R-ENV-014", format!("{name:?}"), event, line),
            Kind::Core(_) => self.payload(event, line),
            Kind::Vendor(_) => {}
        }
    }

    /// The id and the ids that the event names (R-ENV-007, R-ENV-009).
    fn id(&mut self, event: &Event<'_>, line: Line<'_>) {
        let key = Key::of(&event.id);
        if !self.ids.insert(key) {
            self.error(Code::DuplicateId, "R-ENV-007", format!("the id {:?} stands twice", event.id), event, line);
        }
        self.missing.remove(&key);
        let parent =
            event.parent.as_deref().filter(|parent| *parent != "root").map(|parent| (parent, Code::MissingParent));
        let causes = event.cause.iter().map(|cause| (&**cause, Code::MissingCause));
        for (name, code) in parent.into_iter().chain(causes) {
            let key = Key::of(name);
            if !self.ids.contains(&key) {
                let place =
                    || Place { record: Some(event.id.to_string()), names: Some(name.to_owned()), ..line.place() };
                self.missing.entry(key).or_insert_with(|| Missing { names: name.to_owned(), code, place: place() });
            }
        }
    }

    /// Times may run backwards; that they do is said once (R-ENV-006).
    fn time(&mut self, event: &Event<'_>, line: Line<'_>) {
        let Some(time) = event.time.as_ref().filter(|_| !self.backwards) else { return };
        match &self.latest {
            Some(latest) if time < latest => {
                self.backwards = true;
                let why = format!("{} comes after {}", time.as_str(), latest.as_str());
                self.report(Code::TimeBackwards, Severity::Info, "R-ENV-006", why, event, line);
            }
            Some(latest) if time == latest => {}
            Some(_) | None => self.latest = Some(time.clone().into_owned()),
        }
    }

    /// Epochs (R-OWN-001, R-OWN-002, R-OWN-003): whether the event has no effect, whatever its type and payload.
    fn is_void(&mut self, event: &Event<'_>, line: Line<'_>) -> bool {
        let data = event.data().unwrap_or_else(|_| Data::Other("".into(), event.data.borrowed()));
        let Some(finding) = self.fence.admit(event, &data) else { return false };
        let void = finding.severity == Severity::Void;
        self.report(finding.code, finding.severity, finding.rule, finding.why, event, line);
        void
    }

    /// The sources that the event names (R-ENV-019).
    fn source(&mut self, event: &Event<'_>, line: Line<'_>) {
        for src in &event.src {
            if !self.sources.contains(&*src.source) {
                let why = format!("the source {:?} is not open", &*src.source);
                self.report(Code::SourceNotOpened, Severity::Warning, "R-ENV-019", why, event, line);
            }
        }
    }

    /// The payload of a type that is known (R-ENV-013).
    fn payload(&mut self, event: &Event<'_>, line: Line<'_>) {
        let mut data = match event.data() {
            Ok(data) => data,
            Err(e) => return self.error(Code::BadPayload, "R-ENV-013", format!("{}: {e}", event.kind), event, line),
        };
        match &data {
            Data::LogOpened(opened)
                if minor(&opened.spec).zip(minor(SPEC)).is_some_and(|(theirs, ours)| theirs > ours) =>
            {
                let why = format!("the log is of version {}, this reader of {SPEC}", opened.spec);
                self.report(Code::NewerMinor, Severity::Info, "R-ENV-015", why, event, line);
            }
            Data::SourceOpened(opened) => {
                self.sources.insert(opened.source.to_string());
            }
            Data::ActionProposed(proposed) => {
                if let Some(finding) = Finding::of_args(proposed) {
                    self.report(finding.code, finding.severity, finding.rule, finding.why, event, line);
                }
            }
            _ => {}
        }
        if let Data::RedactionApplied(RedactionApplied { blobs: Some(gone), .. }) = &data {
            self.absent.retain(|(digest, _)| gone.iter().all(|blob| **blob != **digest));
            self.checked.extend(gone.iter().map(ToString::to_string));
        }
        self.blobs(&mut data, event, line);
    }

    /// The blobs that a payload refers to.
    fn blobs(&mut self, data: &mut Data<'_>, event: &Event<'_>, line: Line<'_>) {
        if let Some(store) = self.blobs.filter(|_| self.blob_mark.find(event.data.get().as_bytes()).is_some()) {
            for value in data.values_mut() {
                self.blob(store, value, event, line);
            }
        }
    }

    /// A reference to a blob (R-BYT-012, R-BYT-013).
    fn blob(&mut self, store: &BlobStore, value: &Value<'_>, event: &Event<'_>, line: Line<'_>) {
        let Value::Blob(blob) = value else { return };
        if self.checked.contains(&*blob.digest) {
            return;
        }
        self.checked.insert(blob.digest.to_string());
        let (code, rule, why) = match store.verify(&blob.digest) {
            _ if store.path(&blob.digest).is_none() => {
                (Code::BadPayload, "R-BYT-012", format!("{:?} is no digest", blob.digest))
            }
            Ok(BlobState::Whole { size }) if size == blob.size => return,
            Ok(BlobState::Whole { size }) => {
                (Code::BlobMismatch, "R-BYT-012", format!("{} has {size} bytes, not {}", blob.digest, blob.size))
            }
            Ok(BlobState::Mismatch) => (Code::BlobMismatch, "R-BYT-013", format!("{} has other bytes", blob.digest)),
            gone @ (Ok(BlobState::Missing) | Err(_)) => {
                let why = gone.map_or_else(|e| e.to_string(), |_| "it is not there".into());
                let place = Place { record: Some(event.id.to_string()), ..line.place() };
                let found = Diagnostic::new(Code::MissingBlob, Severity::Error, place).rule("R-BYT-012");
                return self.absent.push((blob.digest.to_string(), found.because(format!("{}: {why}", blob.digest))));
            }
        };
        self.error(code, rule, why, event, line);
    }

    fn error(&mut self, code: Code, rule: &'static str, why: String, event: &Event<'_>, line: Line<'_>) {
        self.report(code, Severity::Error, rule, why, event, line);
    }

    fn report(
        &mut self,
        code: Code,
        severity: Severity,
        rule: &'static str,
        why: String,
        event: &Event<'_>,
        line: Line<'_>,
    ) {
        let place = Place { record: Some(event.id.to_string()), ..line.place() };
        self.found.diagnostics.push(Diagnostic::new(code, severity, place).rule(rule).because(why));
    }

    fn finish(mut self) -> Validation {
        self.absent.drain(..).for_each(|(_, found)| self.found.diagnostics.push(found));
        let mut missing: Vec<Missing> = self.missing.into_values().collect();
        missing.sort_by_key(|m| (m.place.offset, m.names.clone()));
        for Missing { names, code, place } in missing {
            let why = format!("no event has the id {names:?}");
            self.found.diagnostics.push(Diagnostic::new(code, Severity::Warning, place).rule("R-ENV-009").because(why));
        }
        self.found.log = self.order.log().map(str::to_owned);
        self.found
    }
}

/// The minor of a version such as `1.0` or `1.2-draft`.
fn minor(spec: &str) -> Option<u64> {
    spec.split('-').next()?.split('.').nth(1)?.parse().ok()
}
