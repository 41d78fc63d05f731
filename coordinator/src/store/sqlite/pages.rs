//! A checksum on every page of the file. SQLite believes what it reads; this layer between SQLite and the operating
//! system does not: it writes a digest into the last bytes of each page and refuses a page whose digest does not fit.
//! A flipped bit is then an error wherever it is, never another number. The log (`-wal`) has checksums of SQLite's own.
//!
//! Full of unsafe code, because SQLite calls these functions through C. Every method passes on to the ordinary one; only
//! reading and writing whole pages of the main file do more.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::ptr;
use std::sync::OnceLock;

use rusqlite::ffi::{
    self, SQLITE_ERROR, SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_RESERVE_BYTES,
    SQLITE_IOERR_DATA, SQLITE_IOERR_SHORT_READ, SQLITE_OK, SQLITE_OPEN_MAIN_DB, sqlite3_file, sqlite3_int64,
    sqlite3_io_methods, sqlite3_vfs,
};
use rusqlite::{Connection, OpenFlags};

/// Bytes of a page; SQLite's default, and the only size we make.
pub(super) const PAGE: usize = 4_096;

/// Bytes at the end of each page that SQLite leaves to us.
pub(super) const RESERVED: usize = 8;

/// Where the header of the file says how many bytes are left to us.
pub(super) const RESERVED_AT: usize = 20;

/// The name of this layer.
const NAME: &CStr = c"togl-pages";

/// Opens a connection whose pages are checked.
pub(super) fn open(name: &std::path::Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let code = *REGISTERED.get_or_init(register);
    if code != SQLITE_OK {
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
    }
    Connection::open_with_flags_and_vfs(name, flags, NAME)
}

/// Asks SQLite to leave room for the digests in a file that is about to be made.
pub(super) fn reserve(connection: &Connection) -> rusqlite::Result<()> {
    let mut bytes = RESERVED as c_int;
    // SAFETY: the handle is open for as long as `connection` is borrowed; the call reads and writes one int.
    let code = unsafe {
        let argument = ptr::from_mut(&mut bytes).cast();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), SQLITE_FCNTL_RESERVE_BYTES, argument)
    };
    match code {
        SQLITE_OK => Ok(()),
        code => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)),
    }
}

/// Bytes of the header of an SQLite file.
pub(super) const HEADER: usize = 100;

/// The header of the file behind a connection, zeros where it is shorter, and the length of the file. Both come from
/// SQLite: opening and closing the file beside it would make the system forget all locks that SQLite has on it, as POSIX
/// wants, and the next program that reads it would take it for unused and remove the log.
pub(super) fn header(connection: &Connection) -> rusqlite::Result<([u8; HEADER], u64)> {
    let (mut header, mut length) = ([0; HEADER], 0);
    let file = file_of(connection, SQLITE_FCNTL_FILE_POINTER)?;
    // SAFETY: the file is open for as long as `connection` is borrowed; the buffers have the lengths that are asked for.
    let code = unsafe {
        match read(file, header.as_mut_ptr().cast(), HEADER as c_int, 0) {
            SQLITE_OK | SQLITE_IOERR_SHORT_READ => file_size(file, &mut length),
            code => code,
        }
    };
    match code {
        SQLITE_OK => Ok((header, length.cast_unsigned())),
        code => Err(failure(code)),
    }
}

/// Whether a page of the file behind a connection is as it was written, whatever its log says; none behind the end. One
/// that is all zeros was never written, because nobody needs it.
pub(super) fn is_whole(connection: &Connection, page: u64) -> rusqlite::Result<Option<bool>> {
    let mut bytes = [0u8; PAGE];
    let file = file_of(connection, SQLITE_FCNTL_FILE_POINTER)?;
    let offset = page.saturating_mul(PAGE as u64).cast_signed();
    // SAFETY: as above.
    match unsafe { read(file, bytes.as_mut_ptr().cast(), PAGE as c_int, offset) } {
        SQLITE_OK => Ok(Some(true)),
        SQLITE_IOERR_DATA => Ok(Some(bytes.iter().all(|byte| *byte == 0))),
        SQLITE_IOERR_SHORT_READ => Ok(None),
        code => Err(failure(code)),
    }
}

/// Where the log of a store ends, as SQLite says it to everybody who has the store open: the first of its index (`-shm`),
/// which counts the transactions, tells the number of the last frame and carries its checksum. Who writes changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogEnd([u8; INDEX_HEADER]);

/// Bytes of the index' header, and where things are in it (<https://sqlite.org/walformat.html>).
const INDEX_HEADER: usize = 48;
const LAST_FRAME_AT: usize = 16;
const CHECKSUM_AT: usize = 24;
const INDEX_PAGE: c_int = 32_768;

/// Bytes of the log's header and of each frame's; a frame's ends with the checksum of all before it.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: usize = 24;

/// What the index of the log says now. It is in memory that SQLite shares, so this costs no call of the system.
pub(super) fn log_end(connection: &Connection) -> rusqlite::Result<LogEnd> {
    let file = file_of(connection, SQLITE_FCNTL_FILE_POINTER)?;
    let mut index: *mut c_void = ptr::null_mut();
    let mut header = [0; INDEX_HEADER];
    // SAFETY: the file is open for as long as `connection` is borrowed. What it maps stays mapped for as long, and begins
    // with the header; nobody writes to it while no transaction of ours runs, and who does in spite of that is found out.
    let code = unsafe {
        let code = shm_map(file, 0, INDEX_PAGE, 0, &mut index);
        if code == SQLITE_OK && !index.is_null() {
            ptr::copy_nonoverlapping(index.cast(), header.as_mut_ptr(), INDEX_HEADER);
        }
        code
    };
    match code {
        SQLITE_OK => Ok(LogEnd(header)),
        code => Err(failure(code)),
    }
}

/// Whether the log really ends so: its last frame carries the checksum, which is of all frames, that its index tells.
pub(super) fn ends_so(connection: &Connection, LogEnd(end): &LogEnd) -> bool {
    let word = |at: usize| u32::from_ne_bytes([end[at], end[at + 1], end[at + 2], end[at + 3]]);
    let Some(before) = u64::from(word(LAST_FRAME_AT)).checked_sub(1) else { return true };
    let offset = LOG_HEADER + before * (FRAME_HEADER + PAGE) as u64;
    let mut frame = [0u8; FRAME_HEADER];
    let Ok(log) = file_of(connection, SQLITE_FCNTL_JOURNAL_POINTER) else { return false };
    // SAFETY: as for the main file.
    let code = unsafe { read(log, frame.as_mut_ptr().cast(), FRAME_HEADER as c_int, offset.cast_signed()) };
    let checksum = [word(CHECKSUM_AT).to_be_bytes(), word(CHECKSUM_AT + 4).to_be_bytes()];
    code == SQLITE_OK && frame[FRAME_HEADER - 8..] == *checksum.as_flattened()
}

/// A file behind a connection, the store or its log: one of ours, open for as long as the connection is.
fn file_of(connection: &Connection, which: c_int) -> rusqlite::Result<*mut sqlite3_file> {
    let mut file: *mut sqlite3_file = ptr::null_mut();
    // SAFETY: the handle is open for as long as `connection` is borrowed; the call writes one pointer, and what it
    // points to is a file, which has its methods while it is open.
    let (code, open) = unsafe {
        let argument = ptr::from_mut(&mut file).cast();
        let handle = connection.handle();
        let code = ffi::sqlite3_file_control(handle, c"main".as_ptr(), which, argument);
        (code, code == SQLITE_OK && !file.is_null() && !(*file).pMethods.is_null())
    };
    match open {
        true => Ok(file),
        false => Err(failure(if code == SQLITE_OK { SQLITE_ERROR } else { code })),
    }
}

fn failure(code: c_int) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}

/// The digest of a page: of its number, so that pages cannot change places, and of what SQLite wrote.
fn digest(page: &[u8; PAGE], offset: u64) -> [u8; RESERVED] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&offset.to_le_bytes());
    hasher.update(&page[..PAGE - RESERVED]);
    let mut digest = [0; RESERVED];
    hasher.finalize_xof().fill(&mut digest);
    digest
}

/// Gives every whole page of a file the digest that fits it.
pub(super) fn seal(file: &mut [u8]) {
    let (pages, _) = file.as_chunks_mut::<PAGE>();
    for (offset, page) in (0u64..).step_by(PAGE).zip(pages) {
        let digest = digest(page, offset);
        page[PAGE - RESERVED..].copy_from_slice(&digest);
    }
}

/// Whether a page is as it was written.
pub(super) fn fits(page: &[u8; PAGE], offset: u64) -> bool {
    page[PAGE - RESERVED..] == digest(page, offset)
}

/// An open file: ours first, the ordinary one right behind it.
#[repr(C)]
struct File {
    methods: *const sqlite3_io_methods,
    /// Whether pages of it have digests.
    checked: bool,
}

/// What SQLite knows of this layer, and the ordinary layer below. Lives as long as the process.
#[repr(C)]
struct Layer {
    vfs: sqlite3_vfs,
    below: *mut sqlite3_vfs,
}

static REGISTERED: OnceLock<c_int> = OnceLock::new();

fn register() -> c_int {
    // SAFETY: SQLite is told how to behave and initialises itself here; what it returns lives as long as the process. Our copy of its entry is
    // leaked on purpose, because SQLite keeps the pointer.
    unsafe {
        // Counting every allocation costs a lock each. It is too late where SQLite is in use already, and does not matter.
        let _ = ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int);
        let below = ffi::sqlite3_vfs_find(ptr::null());
        if below.is_null() {
            return SQLITE_ERROR;
        }
        let vfs = sqlite3_vfs {
            szOsFile: size_of::<File>() as c_int + (*below).szOsFile,
            pNext: ptr::null_mut(),
            zName: NAME.as_ptr(),
            xOpen: Some(open_file),
            ..*below
        };
        let layer = Box::leak(Box::new(Layer { vfs, below }));
        ffi::sqlite3_vfs_register(&mut layer.vfs, 0)
    }
}

/// The ordinary file behind ours.
///
/// # Safety
/// `file` must be one that [`open_file`] was given.
unsafe fn below(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: SQLite allocated `szOsFile` bytes, which is both files one behind the other.
    unsafe { file.cast::<u8>().add(size_of::<File>()).cast() }
}

/// Opens the ordinary file; remembers whether it is the main one.
unsafe extern "C" fn open_file(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes the entry that we registered, which is the first field of a `Layer`, and room for a file
    // of the size that the entry asks for. `pMethods` must be null unless the file is open.
    unsafe {
        let ours = file.cast::<File>();
        (*ours).methods = ptr::null();
        (*ours).checked = flags & SQLITE_OPEN_MAIN_DB != 0;
        let real = below(file);
        (*real).pMethods = ptr::null();
        let layer = (*vfs.cast::<Layer>()).below;
        let Some(open) = (*layer).xOpen else { return SQLITE_ERROR };
        let code = open(layer, name, real, flags, flags_out);
        if !(*real).pMethods.is_null() {
            (*ours).methods = &raw const METHODS;
        }
        if code == SQLITE_OK && (*ours).checked {
            (*ours).checked = is_checked(real);
        }
        code
    }
}

/// Whether a file leaves room for digests; a new one will.
unsafe fn is_checked(real: *mut sqlite3_file) -> bool {
    let mut header = [0u8; HEADER];
    // SAFETY: the file is open, and the buffer has the length that is asked for.
    let code = unsafe {
        let methods = &*(*real).pMethods;
        methods.xRead.map_or(SQLITE_ERROR, |read| read(real, header.as_mut_ptr().cast(), HEADER as c_int, 0))
    };
    code != SQLITE_OK || usize::from(header[RESERVED_AT]) == RESERVED
}

/// Whether `amount` bytes at `offset` are whole pages.
fn whole_pages(amount: c_int, offset: sqlite3_int64) -> bool {
    let page = PAGE as i64;
    amount > 0 && i64::from(amount) % page == 0 && offset % page == 0
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    buffer: *mut c_void,
    amount: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: `file` is one of ours and open; `buffer` has `amount` bytes.
    unsafe {
        let real = below(file);
        let code = match (*(*real).pMethods).xRead {
            Some(read) => read(real, buffer, amount, offset),
            None => SQLITE_ERROR,
        };
        if code != SQLITE_OK || !(*file.cast::<File>()).checked || !whole_pages(amount, offset) {
            return code;
        }
        let bytes = std::slice::from_raw_parts(buffer.cast::<u8>(), amount as usize);
        let (pages, _) = bytes.as_chunks::<PAGE>();
        let fit = (offset as u64..).step_by(PAGE).zip(pages).all(|(offset, page)| fits(page, offset));
        if fit { SQLITE_OK } else { SQLITE_IOERR_DATA }
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    buffer: *const c_void,
    amount: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: as for reading.
    unsafe {
        let real = below(file);
        let Some(write) = (*(*real).pMethods).xWrite else { return SQLITE_ERROR };
        if !(*file.cast::<File>()).checked || !whole_pages(amount, offset) {
            return write(real, buffer, amount, offset);
        }
        let bytes = std::slice::from_raw_parts(buffer.cast::<u8>(), amount as usize);
        let (pages, _) = bytes.as_chunks::<PAGE>();
        for (at, page) in (offset as u64..).step_by(PAGE).zip(pages) {
            // SQLite's own copy stays as it is: readers of the same page must not see it change.
            let mut page = *page;
            let digest = digest(&page, at);
            page[PAGE - RESERVED..].copy_from_slice(&digest);
            let code = write(real, page.as_ptr().cast(), PAGE as c_int, at as sqlite3_int64);
            if code != SQLITE_OK {
                return code;
            }
        }
        SQLITE_OK
    }
}

/// The ordinary method, for everything that has nothing to do with pages.
macro_rules! pass_on {
    ($($name:ident => $method:ident ($($argument:ident: $type:ty),*);)+) => {$(
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $type)*) -> c_int {
            // SAFETY: `file` is one of ours and open, so the one behind it has its methods.
            unsafe {
                let real = below(file);
                (*(*real).pMethods).$method.map_or(SQLITE_ERROR, |method| method(real $(, $argument)*))
            }
        }
    )+};
}

pass_on! {
    close => xClose();
    truncate => xTruncate(size: sqlite3_int64);
    sync => xSync(flags: c_int);
    file_size => xFileSize(size: *mut sqlite3_int64);
    lock => xLock(level: c_int);
    unlock => xUnlock(level: c_int);
    check_reserved_lock => xCheckReservedLock(taken: *mut c_int);
    file_control => xFileControl(op: c_int, argument: *mut c_void);
    sector_size => xSectorSize();
    all_characteristics => xDeviceCharacteristics();
    shm_map => xShmMap(page: c_int, size: c_int, extend: c_int, address: *mut *mut c_void);
    shm_lock => xShmLock(offset: c_int, count: c_int, flags: c_int);
    shm_unmap => xShmUnmap(delete: c_int);
}

/// What the device can do, but for reading parts of pages, which nobody could check.
unsafe extern "C" fn characteristics(file: *mut sqlite3_file) -> c_int {
    // SAFETY: passed on as it is.
    unsafe { all_characteristics(file) & !SUBPAGE_READ }
}

/// `SQLITE_IOCAP_SUBPAGE_READ`.
const SUBPAGE_READ: c_int = 0x8000;

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: as for the others.
    unsafe {
        let real = below(file);
        if let Some(barrier) = (*(*real).pMethods).xShmBarrier {
            barrier(real);
        }
    }
}

/// Version 2: with shared memory for the log, without mapping the file, which would go around the checks.
static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};
