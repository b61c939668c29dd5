package nfs3

import (
	"bytes"
	"encoding/binary"
	"net"
	"time"
)

// answering is a connection to a server with answers of the test.
type answering struct {
	net.Conn
	// answer returns the results of a call, from their status on.
	answer func(procedure uint32, call []byte) []byte
	reply  bytes.Buffer
}

// answeredBy is a directory of such a server.
func answeredBy(answer func(procedure uint32, call []byte) []byte) *dir {
	called := &conn{Conn: &answering{answer: answer}, timeout: time.Minute}
	with := &session{client: NewClient("127.0.0.1", Options{Port: 1, MountPort: 1, CallTimeout: time.Minute}), share: "/share", conn: called}
	return &dir{session: with, handle: []byte("directory"), path: "/share", fileSystem: shareNumber}
}

func (a *answering) Write(record []byte) (int, error) {
	const header, procedureAt = 4, 24
	head := (&encoder{}).uint32(binary.BigEndian.Uint32(record[header:]), messageBack, accepted, authNone, 0, success)
	body := a.answer(binary.BigEndian.Uint32(record[procedureAt:]), record[header:])
	_ = binary.Write(&a.reply, binary.BigEndian, uint32(lastFragment|len(head.buf)+len(body)))
	a.reply.Write(head.buf)
	a.reply.Write(body)
	return len(record), nil
}

func (a *answering) Read(data []byte) (int, error) { return a.reply.Read(data) }
func (*answering) SetDeadline(time.Time) error     { return nil }
func (*answering) Close() error                    { return nil }
