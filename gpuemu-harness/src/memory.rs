//! How the process keeps the memory that it has freed.

/// Lets the C library keep freed memory for the next case. A case takes and frees a dozen arrays of some megabytes; by
/// default glibc gives such memory back at once, and a third of a run is then spent on fresh pages.
///
/// For processes that are ours alone: the main of a test binary.
pub fn keep_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// The largest threshold that glibc takes: half of a thread's heap.
        const IN_HEAP: libc::c_int = 32 << 20;
        const KEPT: libc::c_int = 1 << 30;
        const AT_ONCE: libc::c_int = 64 << 20;
        // SAFETY: `mallopt` takes two integers and may be called at any time; a value it does not like changes nothing.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, IN_HEAP);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
            libc::mallopt(libc::M_TOP_PAD, AT_ONCE);
        }
    }
}
