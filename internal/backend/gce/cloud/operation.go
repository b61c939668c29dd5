package cloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

const (
	operationDone = "DONE"
	// mostRepeats is how many attempts of before one call goes through.
	maxAttempts = 16
)

// change is something that one operation does in a zone.
//
// It is asked for with a request id that is computed, never drawn: whoever asks again,
// after a crash or as a second leader, takes part in the operation that there is, and a
// request that comes late does nothing. Once an operation ended in error, the next
// attempt's id is computed from that operation's name: the API would answer the old id
// with the old error for a day.
type change struct {
	// doing is what it does, for people.
	doing string
	zone  string
	// basis is what the change is, and all that it was decided on: the same for a repeat,
	// and another once it took effect.
	basis []string
	// ask asks for it.
	send func(ctx context.Context, requestID string) (*compute.Operation, error)
	// isSeen tells whether it took effect, where an operation of before may have done it
	// and have been undone since. Nil: one that ended well did it for good.
	isSeen func(ctx context.Context) (bool, error)
}

// make sees a change through: nil says that it is done, InProgress that it goes on.
func (c *Client) do(ctx context.Context, wanted change) error {
	key := Digest(wanted.basis...)
	before, _ := c.history.Get(key)
	var failed error
	for range maxAttempts {
		began, err := c.send(ctx, wanted, requestID(key, before))
		switch {
		case err != nil && ReasonOf(err) != noReason:
			return err
		case err != nil:
			return errors.Join(errSent, err)
		}
		ended, err := c.await(ctx, wanted, began)
		if err != nil {
			return err
		}
		if failed = failureOf(ended); failed == nil {
			seen, err := tookEffect(ctx, wanted, began)
			if seen || err != nil {
				return err
			}
			failed = backend.InProgress.Errorf("%s was done, and was undone since: it is done again", wanted.doing)
		}
		before = ended.Name
		c.history.Add(key, before)
		if began.Status != operationDone {
			return failed
		}
		// It had ended when it was asked for: it is an attempt of before.
	}
	return failed
}

func (c *Client) send(ctx context.Context, wanted change, id string) (*compute.Operation, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	return wanted.send(ctx, id)
}

func tookEffect(ctx context.Context, wanted change, began *compute.Operation) (bool, error) {
	if began.Status != operationDone || wanted.isSeen == nil {
		return true, nil
	}
	return wanted.isSeen(ctx)
}

// await waits for an operation to end, for a while; other calls are made meanwhile. Whoever
// is told InProgress finds it again by asking for the same.
func (c *Client) await(ctx context.Context, wanted change, operation *compute.Operation) (*compute.Operation, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Operation)
	defer cancel()
	if operation.Status == operationDone {
		return operation, nil
	}
	backend.Accepted(ctx)
	ended, err := c.poller.await(ctx, c, wanted.zone, operation.Name)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, backend.InProgress.Errorf("%s goes on (operation %s)", wanted.doing, operation.Name)
	case err != nil:
		return nil, backend.InProgress.Errorf("%s goes on (operation %s): %v", wanted.doing, operation.Name, err)
	}
	return ended, nil
}

// running are the operations of a type, such as attachDisk, that haven't ended in a zone.
func (c *Client) running(ctx context.Context, zone, operationType string) (found []*compute.Operation, err error) {
	filter := fmt.Sprintf(`(operationType = %q) AND (status != %q)`, operationType, operationDone)
	err = c.compute.ZoneOperations.List(c.Project, zone).Filter(filter).Pages(ctx, func(page *compute.OperationList) error {
		for _, operation := range page.Items {
			// What a filter means is not left to the API alone.
			if operation.OperationType == operationType && operation.Status != operationDone {
				found = append(found, operation)
			}
		}
		return nil
	})
	return found, err
}

// Digest is a hash of words, whatever is in them.
func Digest(words ...string) string {
	hash := sha256.New()
	for _, word := range words {
		fmt.Fprintf(hash, "%d:%s,", len(word), word)
	}
	return string(hash.Sum(nil))
}

// requestID is the id of the attempt at a change that follows on the operation before.
// It has the form of a UUID made from a hash.
func requestID(key string, before any) string {
	after, _ := before.(string)
	id := []byte(Digest("stowage.dev", key, after))[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// PathOf is what a link says after the endpoint: from projects/ on.
func PathOf(link string) string {
	if at := strings.Index(link, "projects/"); at >= 0 {
		return link[at:]
	}
	return link
}

// NameOf is what a link ends with.
func NameOf(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }

// HexDigest is Digest in hexadecimal digits.
func HexDigest(words ...string) string { return hex.EncodeToString([]byte(Digest(words...))) }
