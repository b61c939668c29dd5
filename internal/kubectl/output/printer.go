package output

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// Formats of -o. The empty format is text for people.
const (
	FormatText = ""
	FormatWide = "wide"
	FormatJSON = "json"
	FormatYAML = "yaml"
)

var (
	formats = []string{FormatWide, FormatJSON, FormatYAML}
	colors  = []string{"auto", "always", "never"}
)

// Flags are the flags of a verb that prints.
type Flags struct {
	Format string
	Color  string
}

// AddTo adds -o and --color, with completion, to a command.
func (f *Flags) AddTo(command *cobra.Command) {
	command.Flags().StringVarP(&f.Format, "output", "o", "", "Output format: "+strings.Join(formats, ", ")+". Default: text for people.")
	command.Flags().StringVar(&f.Color, "color", "auto", "Colours: auto (only on a terminal, and without $NO_COLOR), always or never.")
	complete := func(values []string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	_ = command.RegisterFlagCompletionFunc("output", complete(formats))
	_ = command.RegisterFlagCompletionFunc("color", complete(colors))
}

// Printer checks the flags and returns a printer to out.
func (f *Flags) Printer(out io.Writer) (*Printer, error) {
	if f.Format != FormatText && !slices.Contains(formats, f.Format) {
		return nil, fmt.Errorf("-o is %s, not %q", strings.Join(formats, ", "), f.Format)
	}
	if !slices.Contains(colors, f.Color) {
		return nil, fmt.Errorf("--color is %s, not %q", strings.Join(colors, ", "), f.Color)
	}
	color := f.Color == "always" || f.Color == "auto" && IsTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return &Printer{Out: out, Format: f.Format, Color: color}, nil
}

// IsTerminal reports whether a writer is a terminal.
func IsTerminal(out io.Writer) bool {
	file, is := out.(*os.File)
	return is && term.IsTerminal(int(file.Fd()))
}

// Rows is how many rows a terminal has; 0 for what is none.
func Rows(out io.Writer) int {
	if !IsTerminal(out) {
		return 0
	}
	const usual = 24
	if _, rows, err := term.GetSize(int(out.(*os.File).Fd())); err == nil && rows > 0 {
		return rows
	}
	return usual
}

// Printer writes in one format. It isn't safe for concurrent use.
type Printer struct {
	Out    io.Writer
	Format string
	Color  bool
}

// Structured reports whether the format is for programs, and then prints the value in it.
func (p *Printer) Structured(value any) (bool, error) {
	if p.Format != FormatJSON && p.Format != FormatYAML {
		return false, nil
	}
	text, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		return true, fmt.Errorf("writing JSON: %w", err)
	}
	text = []byte(escape(string(text), "\n"))
	if p.Format == FormatYAML {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return true, fmt.Errorf("writing YAML: %w", err)
		}
		// YAML quotes most control characters itself, but not those that change directions.
		text = []byte(escape(strings.TrimSuffix(string(text), "\n"), "\n"))
	}
	_, err = fmt.Fprintln(p.Out, string(text))
	return true, err
}

// Line prints one line, escaped.
func (p *Printer) Line(format string, arguments ...any) {
	fmt.Fprintln(p.Out, Escape(fmt.Sprintf(format, arguments...)))
}

// Title prints the name of the part that follows, after an empty line if it isn't the first.
func (p *Printer) Title(name string, first bool) {
	if !first {
		fmt.Fprintln(p.Out)
	}
	fmt.Fprintln(p.Out, p.Paint(Escape(name), Faint))
}
