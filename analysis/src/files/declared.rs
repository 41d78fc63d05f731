//! What a file says that it holds, looked at before it is unpacked: more rows and bytes than a file of its size can honestly
//! hold, or pages that contradict the file's own account, are refused. A few kilobytes can otherwise claim a machine's whole
//! memory. Unpacks nothing itself.

use std::io::Cursor;

use polars::prelude::{PolarsError, PolarsResult};
use polars_arrow::io::ipc::format::ipc::planus::ReadAsRoot;
use polars_arrow::io::ipc::format::ipc::{Block, MessageHeaderRef, MessageRef, RecordBatchRef};
use polars_io::prelude::FileMetadata;
use polars_parquet_format::thrift::protocol::TCompactInputProtocol;
use polars_parquet_format::{FileMetaData, PageHeader};
use togl_sweeps::spec::MOST_FOLDS;

/// Columns that a file may have; ours have about a hundred.
const MOST_COLUMNS: u64 = 10_000;
/// Bytes of memory that every file may take.
const FOR_ANY_FILE: u64 = 512 << 20;
/// Bytes of memory that each byte of a file may take beyond that: folds repeat their settings, which packs well.
const FOR_EACH_BYTE: u64 = 200;
/// Bytes that a value takes in memory, whatever it is.
const A_VALUE: u64 = 16;
/// Bytes that a Parquet file may spend on its account of itself; ours has a few thousand.
const LONGEST_ACCOUNT: usize = 16 << 20;
/// What stands before a message of an Arrow file.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// How much a file says that it holds.
#[derive(Debug, Default)]
pub struct Declared {
    pub rows: u64,
    pub columns: u64,
    /// Bytes of its packed parts once they are unpacked.
    pub bytes: u64,
}

impl Declared {
    /// Refuses what no honest file of `length` bytes says.
    pub fn check(&self, length: usize) -> PolarsResult<()> {
        if self.rows > MOST_FOLDS {
            return Err(too_much(format!("{} rows; at most {MOST_FOLDS} are read", self.rows)));
        }
        if self.columns > MOST_COLUMNS {
            return Err(too_much(format!("{} columns; at most {MOST_COLUMNS} are read", self.columns)));
        }
        let memory =
            self.rows.saturating_mul(self.columns).saturating_mul(A_VALUE).saturating_add(self.bytes);
        let most = FOR_ANY_FILE.saturating_add(FOR_EACH_BYTE.saturating_mul(length as u64));
        if memory > most {
            let (memory, most, length) = (memory >> 20, most >> 20, length >> 10);
            return Err(too_much(format!(
                "{memory} MiB of values in {length} KiB; at most {most} MiB are unpacked"
            )));
        }
        Ok(())
    }

    /// Refuses a Parquet file whose account of itself, at its end, lists what is not there: whoever reads it next makes room
    /// for as many entries as it says. A file without such an account is left to be refused for that.
    pub fn check_account(bytes: &[u8]) -> PolarsResult<()> {
        let Some((before, length)) = bytes.strip_suffix(b"PAR1").and_then(<[u8]>::split_last_chunk) else {
            return Ok(());
        };
        let length = u32::from_le_bytes(*length) as usize;
        let Some(start) = before.len().checked_sub(length) else { return Ok(()) };
        if length > LONGEST_ACCOUNT {
            return Err(too_much(format!(
                "{} MiB of lists; at most {} are read",
                length >> 20,
                LONGEST_ACCOUNT >> 20
            )));
        }
        // An entry takes a byte at least and is charged with eight.
        let mut account = TCompactInputProtocol::new(&before[start..], 16 * length);
        FileMetaData::read_from_in_protocol(&mut account).map(|_| ()).map_err(|_| contradictory())
    }

    /// What the pages of a Parquet file say; each column must have as many values as its row group has rows.
    pub fn by_parquet(bytes: &[u8], metadata: &FileMetadata) -> PolarsResult<Self> {
        let mut declared = Self::default();
        for group in &metadata.row_groups {
            let rows = group.num_rows() as u64;
            declared.rows = declared.rows.saturating_add(rows);
            declared.columns = declared.columns.max(group.n_columns() as u64);
            for range in group.byte_ranges_iter() {
                let (start, end) = (place(range.start)?, place(range.end)?);
                declared.add_pages(bytes.get(start..end).ok_or_else(contradictory)?, rows)?;
            }
        }
        if declared.rows == metadata.num_rows as u64 { Ok(declared) } else { Err(contradictory()) }
    }

    fn add_pages(&mut self, bytes: &[u8], rows: u64) -> PolarsResult<()> {
        let (mut pages, mut values) = (Cursor::new(bytes), 0_u64);
        while values < rows {
            let mut header = TCompactInputProtocol::new(&mut pages, bytes.len());
            let header = PageHeader::read_from_in_protocol(&mut header).map_err(|_| contradictory())?;
            let end = pages.position().saturating_add(place::<u64>(header.compressed_page_size)?);
            pages.set_position(end);
            self.bytes = self.bytes.saturating_add(place(header.uncompressed_page_size)?);
            let (first, second) = (header.data_page_header, header.data_page_header_v2);
            let here = first.map(|page| page.num_values).or_else(|| second.map(|page| page.num_values));
            values = values.saturating_add(place(here.unwrap_or(0))?);
        }
        if values == rows && pages.position() <= bytes.len() as u64 { Ok(()) } else { Err(contradictory()) }
    }

    /// What the batches of an Arrow file say, each at its block.
    pub fn by_arrow<'a>(
        bytes: &[u8],
        columns: usize,
        blocks: impl Iterator<Item = &'a Block>,
    ) -> PolarsResult<Self> {
        let mut declared = Self { columns: columns as u64, ..Self::default() };
        for block in blocks {
            declared.add_batch(bytes, block)?;
        }
        Ok(declared)
    }

    fn add_batch(&mut self, bytes: &[u8], block: &Block) -> PolarsResult<()> {
        let start: usize = place(block.offset)?;
        let body = start.saturating_add(place(block.meta_data_length)?);
        let message = bytes.get(start..body).ok_or_else(contradictory)?;
        let message =
            message.strip_prefix(&CONTINUATION).unwrap_or(message).get(4..).ok_or_else(contradictory)?;
        let message = MessageRef::read_as_root(message).map_err(|_| contradictory())?;
        let body = bytes.get(body..).ok_or_else(contradictory)?;
        match message.header().map_err(|_| contradictory())? {
            Some(MessageHeaderRef::RecordBatch(batch)) => {
                let rows = batch.length().map_err(|_| contradictory())?;
                self.rows = self.rows.saturating_add(place(rows)?);
                self.add_buffers(body, &batch)
            }
            _ => Err(contradictory()),
        }
    }

    fn add_buffers(&mut self, body: &[u8], batch: &RecordBatchRef<'_>) -> PolarsResult<()> {
        let is_packed = batch.compression().map_err(|_| contradictory())?.is_some();
        for buffer in batch.buffers().map_err(|_| contradictory())?.into_iter().flatten() {
            let (start, length): (usize, usize) = (place(buffer.offset())?, place(buffer.length())?);
            let buffer = body.get(start..start.saturating_add(length)).ok_or_else(contradictory)?;
            let unpacked = buffer.first_chunk().map(|first| i64::from_le_bytes(*first)).filter(|_| is_packed);
            let unpacked = unpacked.and_then(|unpacked| u64::try_from(unpacked).ok()); // -1: it is not packed
            self.bytes = self.bytes.saturating_add(unpacked.unwrap_or(length as u64));
        }
        Ok(())
    }
}

/// A number of the file that must be a place or a size.
fn place<N>(number: impl TryInto<N>) -> PolarsResult<N> {
    number.try_into().map_err(|_| contradictory())
}

fn too_much(what: String) -> PolarsError {
    PolarsError::ComputeError(format!("it says that it holds {what}").into())
}

/// What is said of a file whose parts do not agree.
pub fn contradictory() -> PolarsError {
    PolarsError::ComputeError("it is damaged: what it says of its contents is not what is there".into())
}
