//! Lists sessions in files without reading them: what their first and last entries tell.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use palog::envelope::Time;
use palog_adapter::Format;
use palog_adapter::listing::{Listed, TimeFrom, TitleFrom};

use crate::conversation::prompt_text;
use crate::file::FileSession;
use crate::record::Entry;
use crate::times;

/// How much is read at either end of a file, in bytes.
const WINDOW: u64 = 256 << 10;
/// How much of a prompt is taken as the title, in characters.
const TITLE: usize = 200;

/// The beginning of a prompt, for a title.
pub(crate) fn title_of(prompt: &str) -> String {
    prompt.trim().chars().take(TITLE).collect()
}

/// What the first and last entries of a session tell.
pub(crate) fn listed(format: &'static Format, session: &FileSession, path: &Path) -> io::Result<Listed> {
    let meta = fs::metadata(path)?;
    let (mut directory, mut prompt) = (None, None);
    for line in BufReader::new(File::open(path)?.take(WINDOW)).split(b'\n') {
        let line = line?;
        let text = String::from_utf8_lossy(&line);
        let Ok(entry) = serde_json::from_str::<Entry<'_>>(text.trim()) else { continue };
        if entry.is_header() && directory.is_none() {
            directory = entry.cwd.as_ref().map(ToString::to_string);
        }
        if let Some(text) = prompt_text(&entry) {
            prompt = Some(title_of(&text));
            break;
        }
    }
    let (name, recorded) = last(path, meta.len())?;
    let title_from = if name.is_some() { Some(TitleFrom::User) } else { prompt.as_ref().map(|_| TitleFrom::Prompt) };
    let written = || {
        let time = meta.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok())?;
        Some((Time::parse(time.to_string())?, TimeFrom::File))
    };
    let last = recorded.map(|time| (time, TimeFrom::Record)).or_else(written);
    Ok(Listed {
        vendor: format.name,
        id: session.id.clone(),
        path: path.into(),
        title: name.or(prompt),
        title_from,
        directory,
        branch: None,
        last_activity_from: last.as_ref().map(|(_, from)| *from),
        last_activity: last.map(|(time, _)| time),
        bytes: meta.len(),
        subagents: 0,
    })
}

/// The name and the time in the last entries that have them.
fn last(path: &Path, len: u64) -> io::Result<(Option<String>, Option<Time<'static>>)> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(len.saturating_sub(WINDOW)))?;
    let mut tail = Vec::new();
    file.take(WINDOW).read_to_end(&mut tail)?;
    let (mut name, mut time) = (None, None);
    for line in tail.rsplit(|b| *b == b'\n') {
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(line) else { continue };
        name = name.or_else(|| entry.name.as_ref().map(ToString::to_string));
        time = time.or_else(|| entry.timestamp.as_ref().and_then(|raw| times::read(raw).time));
    }
    Ok((name, time))
}
