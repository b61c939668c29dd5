package hotplug

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The management console of User Mode Linux takes and gives datagrams on a unix socket:
// see arch/um/drivers/mconsole.h of the kernel.
const (
	consoleMagic    = 0xcafebabe
	consoleVersion  = 2
	consoleMaxData  = 512
	consolePatience = 10 * time.Second
	// consoleCheck is how often a guest that does not answer is checked for its process.
	consoleCheck = 200 * time.Millisecond
)

type consoleRequest struct {
	Magic, Version, Length uint32
	Data                   [consoleMaxData]byte
}

type consoleReply struct {
	Failed, More, Length uint32
	Data                 [consoleMaxData]byte
}

// errRefused says that a guest got a command and didn't like it.
var errRefused = errors.New("the guest refused")

// command has a guest's kernel do something, and returns what it says. A guest that
// doesn't run is ErrNoGuest.
func command(ctx context.Context, socket, text string) (string, error) {
	answer, err := exchange(ctx, socket, text)
	if err != nil {
		return "", fmt.Errorf("sending %q to a guest: %w", text, err)
	}
	return answer, nil
}

func exchange(ctx context.Context, socket, text string) (string, error) {
	if len(text) >= consoleMaxData {
		return "", errors.New("too long for the console")
	}
	// The reply comes to a file: names without one end at the network namespace.
	folder, err := os.MkdirTemp("", "console-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }() // a leftover is empty
	own := &net.UnixAddr{Name: filepath.Join(folder, "reply"), Net: "unixgram"}
	connection, err := dial(own, socket)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(ctx, consolePatience)
	defer cancel()
	if err := connection.SetWriteDeadline(time.Now().Add(consolePatience)); err != nil {
		return "", err
	}
	request := consoleRequest{Magic: consoleMagic, Version: consoleVersion, Length: uint32(len(text))}
	copy(request.Data[:], text)
	var packet bytes.Buffer
	if err := binary.Write(&packet, binary.NativeEndian, request); err != nil {
		return "", err
	}
	if _, err := connection.Write(packet.Bytes()); err != nil {
		return "", orNoGuest(err)
	}
	return readReply(ctx, connection, socket)
}

func dial(own *net.UnixAddr, socket string) (*net.UnixConn, error) {
	connection, err := net.DialUnix("unixgram", own, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return nil, orNoGuest(err)
	}
	return connection, nil
}

// orNoGuest is ErrNoGuest for an error that the kernel returns when the guest's socket is gone or
// closed.
func orNoGuest(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return ErrNoGuest
	}
	return err
}

// readReply puts the parts of a reply together.
func readReply(ctx context.Context, connection *net.UnixConn, socket string) (string, error) {
	var whole strings.Builder
	buffer := make([]byte, binary.Size(consoleReply{}))
	for {
		size, err := readPart(ctx, connection, socket, buffer)
		if err != nil {
			return "", err
		}
		// The kernel sends no more of the data than there is.
		clear(buffer[size:])
		var part consoleReply
		if err := binary.Read(bytes.NewReader(buffer), binary.NativeEndian, &part); err != nil {
			return "", err
		}
		// The kernel counts the end of the string.
		whole.Write(bytes.TrimRight(part.Data[:min(part.Length, consoleMaxData)], "\x00"))
		switch {
		case part.Failed != 0:
			return "", fmt.Errorf("%w: %s", errRefused, strings.TrimSpace(whole.String()))
		case part.More == 0:
			return strings.TrimSpace(whole.String()), nil
		}
	}
}

// readPart waits for a datagram. A closed socket sends none: a
// killed guest is detected by its process.
func readPart(ctx context.Context, connection *net.UnixConn, socket string, buffer []byte) (int, error) {
	for {
		if err := connection.SetReadDeadline(time.Now().Add(consoleCheck)); err != nil {
			return 0, err
		}
		size, err := connection.Read(buffer)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return size, err
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		again, err := dial(nil, socket)
		if err != nil {
			return 0, err
		}
		again.Close()
	}
}
