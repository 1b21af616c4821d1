package schema

import (
	"reflect"
	"unsafe"
)

// slot is the place of a value in memory. It is the only use of package unsafe
// here: the decoder stores fields at their place, which is several times as
// fast as by reflection.
//
// That is safe because of where slots come from and how they move:
//
//   - A slot starts at memory that reflect or the compiler has allocated for a
//     value of a node's type, so the garbage collector knows the pointers in
//     it.
//   - It moves by offsets that reflect reports for the same type: to a field,
//     to an element, or to where a pointer points. It never leaves that memory.
//   - It holds an unsafe.Pointer and never a uintptr, so it keeps the memory
//     alive and stays valid if the memory moves.
//   - The T of in is that of the node's kind, which was derived from the same
//     type when it was compiled: a nodeInt of 8 bits is an int8 under any name.
//     Types of one kind have one layout.
//
// The zero slot is not a place.
type slot struct{ p unsafe.Pointer }

// slotOf returns the place that a pointer points to.
func slotOf(pointer reflect.Value) slot { return slot{pointer.UnsafePointer()} }

// slotAt is slotOf without reflection.
func slotAt[T any](p *T) slot { return slot{unsafe.Pointer(p)} }

// in returns a pointer to the value at a place, which must have the layout of
// T.
func in[T any](s slot) *T { return (*T)(s.p) }

// value returns the settable value at a place, which must be of type t.
func (s slot) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, s.p).Elem() }

// at returns the place offset bytes further on in the same value.
func (s slot) at(offset uintptr) slot { return slot{unsafe.Add(s.p, offset)} }

// behind returns where the pointer at a place points to, or the zero slot for
// nil.
func (s slot) behind() slot { return slot{*(*unsafe.Pointer)(s.p)} }

// create points the pointer at a place to a new zero value of type elem and
// returns the place of that value.
func (s slot) create(elem reflect.Type) slot {
	p := reflect.New(elem).UnsafePointer()
	*(*unsafe.Pointer)(s.p) = p
	return slot{p}
}

// borrowed returns bytes as a string without a copy. It is for calls that do
// not keep the string: the bytes belong to the document and will change.
func borrowed(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
