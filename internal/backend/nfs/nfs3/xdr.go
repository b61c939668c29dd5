package nfs3

import (
	"encoding/binary"
	"errors"
)

// errGarbled is an invalid reply: too short, too long, or with impossible values.
var errGarbled = errors.New("the server's reply makes no sense")

// encoder writes XDR (RFC 4506).
type encoder struct {
	buf []byte
}

func (e *encoder) uint32(values ...uint32) *encoder {
	for _, value := range values {
		e.buf = binary.BigEndian.AppendUint32(e.buf, value)
	}
	return e
}

func (e *encoder) uint64(value uint64) *encoder {
	e.buf = binary.BigEndian.AppendUint64(e.buf, value)
	return e
}

// opaque writes bytes of variable length: also how strings are written.
func (e *encoder) opaque(data []byte) *encoder {
	e.uint32(uint32(len(data)))
	e.buf = append(e.buf, data...)
	e.buf = append(e.buf, make([]byte, padding(len(data)))...)
	return e
}

// decoder reads XDR from a server. After the first impossible value, err is errGarbled and all
// further values are zero: callers check once, at the end.
type decoder struct {
	buf []byte
	err error
}

func (d *decoder) uint32() uint32 {
	if data := d.bytes(4); data != nil {
		return binary.BigEndian.Uint32(data)
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if data := d.bytes(8); data != nil {
		return binary.BigEndian.Uint64(data)
	}
	return 0
}

func (d *decoder) bool() bool {
	return d.uint32() != 0
}

// opaque reads bytes of variable length, at most limit.
func (d *decoder) opaque(limit int) []byte {
	length := d.uint32()
	if uint64(length) > uint64(limit) {
		d.fail()
		return nil
	}
	data := d.bytes(int(length))
	d.bytes(padding(int(length)))
	return data
}

func (d *decoder) bytes(length int) []byte {
	if d.err != nil || length > len(d.buf) {
		d.fail()
		return nil
	}
	data := d.buf[:length:length]
	d.buf = d.buf[length:]
	return data
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errGarbled
	}
	d.buf = nil
}

// padding fills up to a multiple of four.
func padding(length int) int {
	return (4 - length%4) % 4
}
