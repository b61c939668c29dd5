package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

const logInterval = 200 * time.Millisecond

// followLog prints the effects that a program logs from now on. Their notes are in events.
func followLog(ctx context.Context, program *cluster.Program) {
	file, err := os.Open(program.LogFile)
	if err != nil {
		return
	}
	defer file.Close()
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return
	}
	line, reader := "", bufio.NewReader(file)
	for pause(ctx, logInterval) {
		for {
			read, err := reader.ReadString('\n')
			if line += read; err != nil {
				break
			}
			if text := effectOf(line); text != "" {
				printLine(time.Now(), "log", program.Name, text)
			}
			line = ""
		}
	}
}

// effectOf is what a line in the console format says of an effect; empty if it is none.
func effectOf(line string) string {
	fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
	values := map[string]any{}
	if len(fields) != 4 || fields[1] != "INFO" || json.Unmarshal([]byte(fields[3]), &values) != nil {
		return ""
	}
	text := fields[2]
	for _, key := range []string{effect.Claim, effect.Volume, effect.Backend, effect.Node, effect.Pod, effect.Took, effect.Reason} {
		if value, has := values[key]; has {
			text += fmt.Sprintf(" %s=%v", key, value)
		}
	}
	return text
}
