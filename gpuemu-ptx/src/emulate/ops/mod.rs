//! The instructions, a file for each family: how each is decoded, and what it does.

pub mod atomic;
pub mod barrier;
pub mod compare;
pub mod control;
pub mod convert;
pub mod copy;
pub mod count;
pub mod float;
pub mod half;
pub mod index;
pub mod integer;
pub mod logic;
pub mod matrix;
pub mod memory;
pub mod moves;
pub mod special;
pub mod system;
pub mod video;
pub mod warp;

use super::decode::{Decoded, Decoder, refuse};
use crate::program::Opcode;

/// Decodes the current instruction.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    use Opcode::*;
    match d.opcode() {
        Add | Sub | Mul | Mad | Fma | Div | Rcp | Sqrt | Rsqrt | Sin | Cos | Lg2 | Ex2 | Tanh | Abs | Neg | Min
        | Max | Copysign | Testp => {
            use crate::program::ScalarType as T;
            match d.ty()? {
                T::F32 | T::F64 => float::decode(d),
                T::F16 | T::F16x2 | T::Bf16 | T::Bf16x2 => half::decode(d),
                _ => integer::decode(d),
            }
        }
        Addc | Subc | Madc | Rem | Mul24 | Mad24 | Sad | Bfe | Bfi | Bfind | Bmsk | Szext | Fns | Dp4a | Dp2a
        | Brev | Clz | Popc | Cnot => integer::decode(d),
        And | Or | Xor | Not | Lop3 | Shl | Shr | Shf | Prmt => logic::decode(d),
        Mov => moves::decode(d),
        Selp | Slct | Set | Setp => compare::decode(d),
        Cvt => convert::decode(d),
        Cvta | Isspacep => special::decode(d),
        Ld | Ldu | St | Prefetch | Prefetchu | Applypriority | Discard | Createpolicy => memory::decode(d),
        Atom | Red => atomic::decode(d),
        Cp => copy::decode(d),
        Bar | Barrier | Membar | Fence | Mbarrier => barrier::decode(d),
        Shfl | Vote | Match | Redux | Activemask | Elect => warp::decode(d),
        Bra | Brx | Call | Ret | Exit | Trap | Brkpt => control::decode(d),
        Nanosleep | Pmevent | Griddepcontrol => system::decode(d),
        Ldmatrix | Stmatrix | Movmatrix | Mma | Wmma => matrix::decode(d),
        Vabsdiff | Vabsdiff2 | Vabsdiff4 | Vadd | Vadd2 | Vadd4 | Vavrg2 | Vavrg4 | Vmad | Vmax | Vmax2 | Vmax4
        | Vmin | Vmin2 | Vmin4 | Vset | Vset2 | Vset4 | Vshl | Vshr | Vsub | Vsub2 | Vsub4 => video::decode(d),
        Tex | Tld4 | Txq | Suld | Suq | Sured | Sust | Istypep => refuse("textures and surfaces are not executed"),
        Alloca | Stacksave | Stackrestore => refuse("a stack that grows at run time is not executed"),
        Mapa | Getctarank | Multimem | Setmaxnreg | Wgmma | Tensormap | Clusterlaunchcontrol | Tcgen05 => {
            refuse("instructions of clusters and of newer tensor cores are not executed yet")
        }
    }
}
