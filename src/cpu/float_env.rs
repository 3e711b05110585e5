//! The floating-point environment that the numerics contract assumes: round to nearest, keep denormals, trap nothing.
//!
//! Engines often flush denormals on their own threads, and threads inherit that from the one that starts them. The
//! bytes in the cache must not depend on it.

use std::marker::PhantomData;

/// Puts the contract's environment in place until dropped.
pub struct FloatEnv {
    callers: Control,
    /// The environment belongs to a thread.
    _not_send: PhantomData<*const ()>,
}

impl FloatEnv {
    pub fn enter() -> Self {
        let callers = read();
        if callers & CONTROL_MASK != WANTED {
            write(WANTED | callers & !CONTROL_MASK);
        }
        Self { callers, _not_send: PhantomData }
    }

    /// For threads of our own, for good.
    pub fn enter_for_good() {
        std::mem::forget(Self::enter());
    }
}

impl Drop for FloatEnv {
    fn drop(&mut self) {
        if self.callers & CONTROL_MASK != WANTED {
            write(self.callers);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod control {
    pub type Control = u32;
    /// All but the sticky exception flags.
    pub const CONTROL_MASK: Control = 0xFFC0;
    /// Every exception masked, nearest even, no flushing.
    pub const WANTED: Control = 0x1F80;

    pub fn read() -> Control {
        let mut mxcsr: Control = 0;
        // SAFETY: stmxcsr stores 4 bytes at the given address, a local.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags)) };
        mxcsr
    }

    pub fn write(mxcsr: Control) {
        // SAFETY: the value was read from the register or has no reserved bit set.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    pub type Control = u64;
    /// FZ16, rounding mode, flush to zero, default NaN, and the trap enables.
    pub const CONTROL_MASK: Control = 0x07F8_9F00;
    pub const WANTED: Control = 0;

    pub fn read() -> Control {
        let fpcr: Control;
        // SAFETY: reading FPCR has no effect.
        unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) fpcr, options(nomem, nostack, preserves_flags)) };
        fpcr
    }

    pub fn write(fpcr: Control) {
        // SAFETY: the value was read from the register, or differs from such a one in defined bits only.
        unsafe { std::arch::asm!("msr fpcr, {}", in(reg) fpcr, options(nostack, preserves_flags)) };
    }
}

/// Targets whose environment we know no way to reach keep it as it is.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod control {
    pub type Control = u32;
    pub const CONTROL_MASK: Control = 0;
    pub const WANTED: Control = 0;

    pub fn read() -> Control {
        0
    }

    pub fn write(_control: Control) {}
}

use control::{CONTROL_MASK, Control, WANTED, read, write};

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[cfg(target_arch = "x86_64")]
    const FLUSH: Control = 0x8040;
    #[cfg(target_arch = "aarch64")]
    const FLUSH: Control = 1 << 24;

    #[test]
    fn denormals_survive_on_a_thread_that_flushes_them_and_the_thread_gets_its_setting_back() {
        let before = read();
        write(WANTED | FLUSH);
        let inside = {
            let _env = FloatEnv::enter();
            black_box(1.5e-40f32) * black_box(0.5)
        };
        let after = read();
        write(before);
        assert_eq!(inside, 7.5e-41);
        assert_eq!(after & FLUSH, FLUSH);
    }
}
