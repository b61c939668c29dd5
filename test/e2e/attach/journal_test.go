package attach_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// readWrite is how a disk is attached that its node can write to.
const readWrite = "READ_WRITE"

// attachedRow is what the cloud's journal has of a disk on an instance.
type attachedRow struct{ Instance, Disk, Mode string }

// neverTwice replays the cloud's journal, in which each line is a change: no disk was
// ever attached to two instances of which one could write, but for those that are shared.
// It returns how many attachments there were.
func neverTwice(journal string, shared ...string) (attachments int, err error) {
	rows := map[string]attachedRow{}
	lines := bufio.NewScanner(strings.NewReader(journal))
	lines.Buffer(nil, len(journal)+1)
	for number := 1; lines.Scan(); number++ {
		var changes struct{ Attachments map[string]*attachedRow }
		if err := json.Unmarshal(lines.Bytes(), &changes); err != nil {
			return 0, fmt.Errorf("line %d of the cloud's journal: %w", number, err)
		}
		for at, row := range changes.Attachments {
			if row == nil {
				delete(rows, at)
				continue
			}
			if _, known := rows[at]; !known {
				attachments++
			}
			if !slices.Contains(shared, row.Disk) {
				rows[at] = *row
			}
		}
		if err := writersAlone(rows); err != nil {
			return 0, fmt.Errorf("after line %d of the cloud's journal, %w", number, err)
		}
	}
	return attachments, lines.Err()
}

// writersAlone is an error if a disk has a writer and another user.
func writersAlone(rows map[string]attachedRow) error {
	users := map[string][]attachedRow{}
	for _, row := range rows {
		users[row.Disk] = append(users[row.Disk], row)
	}
	for disk, all := range users {
		for _, user := range all {
			if user.Mode == readWrite && len(all) > 1 {
				return fmt.Errorf("%s has users %v", disk, all)
			}
		}
	}
	return nil
}

// neverTried reads the cloud's log of calls: none tried to attach a disk that another
// node had.
func neverTried(log string) error {
	content, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	answers, tried := 0, []string{}
	for line := range strings.Lines(string(content)) {
		var call struct{ Method, Path, Error string }
		if json.Unmarshal([]byte(line), &call) != nil || call.Method != "instances.attachDisk" {
			continue
		}
		answers++
		if isForAnothers(call.Path, call.Error) {
			tried = append(tried, line)
		}
	}
	if answers == 0 {
		return fmt.Errorf("%s has no attachment", path.Base(log))
	}
	if len(tried) > 0 {
		return errors.New(strings.Join(tried, "; "))
	}
	return nil
}

// isForAnothers reports whether a call, or the operation that it began, was refused because
// of another instance than the one that it was for. One that is repeated may be refused
// because of its own.
func isForAnothers(called, refusal string) bool {
	if !strings.Contains(refusal, "resourceInUse") {
		return false
	}
	_, own, isCall := strings.Cut(strings.TrimSuffix(called, "/attachDisk"), "/projects/")
	return !isCall || !strings.Contains(refusal, "'projects/"+own+"'")
}
