//! Tensors with true strides and offsets: what a subject is given, and what it answers.

mod array;
mod element;
mod layout;
mod view;

pub use array::{Array, Values};
pub use element::{Bool, Element, F8E4M3, F8E5M2, Float, round_to_dtype};
pub use layout::Layout;
pub use view::{View, ViewMut};

use gpuemu_contract::DType;

/// A block of memory and the layout of one tensor in it. The memory may be larger than the tensor: views have gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    dtype: DType,
    layout: Layout,
    /// Eight-byte words, so that every element type is aligned; the tail of the last one is unused.
    words: Vec<u64>,
    /// Elements the memory holds.
    capacity: usize,
}

impl Tensor {
    /// A tensor of `dtype` in memory just large enough for `layout`, all bytes zero.
    pub fn zeros(dtype: DType, layout: Layout) -> Tensor {
        let capacity = layout.span();
        Tensor::with_capacity(dtype, layout, capacity)
    }

    /// A tensor in memory of `capacity` elements, all bytes zero. Panics when `layout` does not fit.
    pub fn with_capacity(dtype: DType, layout: Layout, capacity: usize) -> Tensor {
        assert!(layout.span() <= capacity, "layout needs {} elements, memory has {capacity}", layout.span());
        Tensor { dtype, layout, words: vec![0; (capacity * dtype.size()).div_ceil(8)], capacity }
    }

    /// A contiguous tensor of these elements. Panics when their number is not the shape's.
    pub fn from_slice<T: Element>(shape: &[usize], data: &[T]) -> Tensor {
        let mut tensor = Tensor::zeros(T::DTYPE, Layout::contiguous(shape));
        tensor.data_mut::<T>().copy_from_slice(data);
        tensor
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape, strides and offset.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Sizes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// Number of elements of the tensor (not of its memory).
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether the tensor has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements the memory holds, gaps included.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The whole memory, gaps included, as bytes.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.capacity * self.dtype.size()]
    }

    /// The whole memory, gaps included, as bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.capacity * self.dtype.size()]
    }

    /// The whole memory, gaps included. Panics when `T` is not the tensor's dtype.
    pub fn data<T: Element>(&self) -> &[T] {
        assert_eq!(T::DTYPE, self.dtype, "tensor is {}, asked for {}", self.dtype, T::DTYPE);
        bytemuck::cast_slice(self.bytes())
    }

    /// The whole memory, gaps included. Panics when `T` is not the tensor's dtype.
    pub fn data_mut<T: Element>(&mut self) -> &mut [T] {
        assert_eq!(T::DTYPE, self.dtype, "tensor is {}, asked for {}", self.dtype, T::DTYPE);
        bytemuck::cast_slice_mut(self.bytes_mut())
    }

    /// A typed view. Panics when `T` is not the tensor's dtype.
    pub fn view<T: Element>(&self) -> View<'_, T> {
        View::new(self.data::<T>(), &self.layout)
    }

    /// A typed view to write through. Panics when `T` is not the tensor's dtype.
    pub fn view_mut<T: Element>(&mut self) -> ViewMut<'_, T> {
        assert_eq!(T::DTYPE, self.dtype, "tensor is {}, asked for {}", self.dtype, T::DTYPE);
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut self.words)[..self.capacity * self.dtype.size()];
        ViewMut::new(bytemuck::cast_slice_mut(bytes), &self.layout)
    }

    /// The same memory seen through another layout. Panics when it does not fit.
    pub fn with_layout(mut self, layout: Layout) -> Tensor {
        assert!(
            layout.span() <= self.capacity,
            "layout needs {} elements, memory has {}",
            layout.span(),
            self.capacity
        );
        self.layout = layout;
        self
    }

    /// A dense copy of the elements, in row-major order.
    pub fn to_contiguous(&self) -> Tensor {
        let mut dense = Tensor::zeros(self.dtype, Layout::contiguous(self.shape()));
        dense.copy_elements_from(self);
        dense
    }

    /// Copies every element of `source` (same dtype and shape, any strides); gaps keep their bytes. Panics otherwise.
    pub fn copy_elements_from(&mut self, source: &Tensor) {
        assert_eq!(self.dtype, source.dtype, "copy between dtypes");
        assert_eq!(self.shape(), source.shape(), "copy between shapes");
        fn copy<T: Copy>(to: &mut [T], to_layout: &Layout, from: &[T], from_layout: &Layout) {
            if to_layout.is_contiguous() && from_layout.is_contiguous() {
                let length = from_layout.len();
                to[to_layout.offset..to_layout.offset + length]
                    .copy_from_slice(&from[from_layout.offset..from_layout.offset + length]);
            } else {
                for (to_at, from_at) in to_layout.positions().zip(from_layout.positions()) {
                    to[to_at] = from[from_at];
                }
            }
        }
        let layout = self.layout.clone();
        match self.dtype.size() {
            1 => copy(self.bytes_mut(), &layout, source.bytes(), &source.layout),
            2 => copy::<u16>(
                bytemuck::cast_slice_mut(self.bytes_mut()),
                &layout,
                bytemuck::cast_slice(source.bytes()),
                &source.layout,
            ),
            4 => copy::<u32>(
                bytemuck::cast_slice_mut(self.bytes_mut()),
                &layout,
                bytemuck::cast_slice(source.bytes()),
                &source.layout,
            ),
            _ => copy::<u64>(
                bytemuck::cast_slice_mut(self.bytes_mut()),
                &layout,
                bytemuck::cast_slice(source.bytes()),
                &source.layout,
            ),
        }
    }

    /// The elements as exact float64 or 64-bit integer values, row-major.
    pub fn to_array(&self) -> Array {
        array::read(self)
    }

    /// A contiguous tensor of `dtype` holding these values, each rounded to nearest even (integers wrap).
    pub fn from_array(array: &Array, dtype: DType) -> Tensor {
        array::write(array, dtype)
    }
}

/// Calls `$body` with `$T` bound to the element type of `$dtype`.
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::Float64 => {
                type $T = f64;
                $body
            }
            $crate::DType::Float32 => {
                type $T = f32;
                $body
            }
            $crate::DType::Float16 => {
                type $T = $crate::f16;
                $body
            }
            $crate::DType::BFloat16 => {
                type $T = $crate::bf16;
                $body
            }
            $crate::DType::Float8E4M3 => {
                type $T = $crate::F8E4M3;
                $body
            }
            $crate::DType::Float8E5M2 => {
                type $T = $crate::F8E5M2;
                $body
            }
            $crate::DType::Int8 => {
                type $T = i8;
                $body
            }
            $crate::DType::Int16 => {
                type $T = i16;
                $body
            }
            $crate::DType::Int32 => {
                type $T = i32;
                $body
            }
            $crate::DType::Int64 => {
                type $T = i64;
                $body
            }
            $crate::DType::UInt8 => {
                type $T = u8;
                $body
            }
            $crate::DType::UInt16 => {
                type $T = u16;
                $body
            }
            $crate::DType::UInt32 => {
                type $T = u32;
                $body
            }
            $crate::DType::UInt64 => {
                type $T = u64;
                $body
            }
            $crate::DType::Bool => {
                type $T = $crate::Bool;
                $body
            }
        }
    };
}
