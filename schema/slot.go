package schema

import (
	"reflect"
	"unsafe"
)

// slot is the place of a value in memory, and the only way in which this package
// touches memory past the type system: the decoder writes fields where they lie,
// which is several times as fast as by reflection.
//
// It is safe because of what a slot is made of and how it moves:
//
//   - A slot begins at memory that reflect or the compiler has allocated for a
//     value of a node's type, so that the collector knows the pointers in it.
//   - It moves by offsets that reflect tells of the same type, to a field, an
//     element or behind a pointer, and so never leaves that memory.
//   - It holds an unsafe.Pointer and never a uintptr, so it keeps the memory alive
//     and stays right if the collector moves it.
//   - The T of in is that of the node's kind, which was taken from the same type
//     when it was compiled: nodeInt of 8 bits is an int8 of any name. Types of one
//     kind have one layout, whatever their names.
//
// The zero slot is no place.
type slot struct{ p unsafe.Pointer }

// slotOf returns the place that a pointer points to.
func slotOf(pointer reflect.Value) slot { return slot{pointer.UnsafePointer()} }

// slotAt is slotOf without reflection.
func slotAt[T any](p *T) slot { return slot{unsafe.Pointer(p)} }

// in returns the value at a place, which must have the layout of T.
func in[T any](s slot) *T { return (*T)(s.p) }

// value returns the value at a place, which must be of type t; it can be set.
func (s slot) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, s.p).Elem() }

// at returns the place that lies offset bytes further in the same value.
func (s slot) at(offset uintptr) slot { return slot{unsafe.Add(s.p, offset)} }

// behind returns where the pointer at a place points to: the zero slot for nil.
func (s slot) behind() slot { return slot{*(*unsafe.Pointer)(s.p)} }

// create makes the pointer at a place point to a new zero value of type elem.
func (s slot) create(elem reflect.Type) slot {
	p := reflect.New(elem).UnsafePointer()
	*(*unsafe.Pointer)(s.p) = p
	return slot{p}
}

// borrowed returns bytes as a string without a copy. It is for calls that keep
// nothing of it: the bytes belong to the document and change later.
func borrowed(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
