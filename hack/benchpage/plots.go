package main

import (
	"bytes"
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	width  = 11 * vg.Centimeter
	height = 7 * vg.Centimeter
	// headroom is how much higher than its values a plot is.
	headroom = 1.1
)

// colors are those of programs, in the order in which they come.
var colors = []color.Color{color.RGBA{R: 0x1f, G: 0x77, B: 0xb4, A: 255}, color.RGBA{R: 0xff, G: 0x7f, B: 0x0e, A: 255}, color.RGBA{R: 0x2c, G: 0xa0, B: 0x2c, A: 255}}

// speeds plots each round of each program: how far the rounds lie apart says what a ratio is worth. Rounds of the earlier
// run are hollow.
func speeds(now, earlier []result) (string, error) {
	chart := newChart("", "per second")
	chart.Y.Min = 0
	programs := groupBy(now, func(r result) string { return r.Program })
	names := make([]string, len(programs))
	for i, of := range programs {
		names[i] = of.name
		if err := addPoints(chart, i, of.results, draw.CircleGlyph{}); err != nil {
			return "", err
		}
		for _, before := range groupBy(earlier, func(r result) string { return r.Program }) {
			if before.name != of.name {
				continue
			}
			if err := addPoints(chart, i, before.results, draw.RingGlyph{}); err != nil {
				return "", err
			}
		}
	}
	chart.NominalX(names...)
	chart.X.Min, chart.X.Max = -0.5, float64(len(names))-0.5
	chart.Y.Max *= headroom
	return svg(chart)
}

// addPoints adds the rounds of a program, side by side.
func addPoints(chart *plot.Plot, at int, rounds []result, shape draw.GlyphDrawer) error {
	points := make(plotter.XYs, len(rounds))
	for i, round := range rounds {
		points[i] = plotter.XY{X: float64(at) + 0.4*(float64(i)+0.5)/float64(len(rounds)) - 0.2, Y: round.PerSecond}
	}
	scatter, err := plotter.NewScatter(points)
	if err != nil {
		return fmt.Errorf("plotting rounds: %w", err)
	}
	scatter.GlyphStyle = draw.GlyphStyle{Color: colors[at%len(colors)], Radius: vg.Points(3), Shape: shape}
	chart.Add(scatter)
	return nil
}

// latencies plots, for the last round of each program, how its median, 99th percentile and maximum lie.
func latencies(now []result) (string, error) {
	chart := newChart("", "ms")
	chart.Y.Min = 0
	programs := groupBy(now, func(r result) string { return r.Program })
	names := make([]string, len(programs))
	for i, of := range programs {
		names[i] = of.name
		last := of.results[len(of.results)-1].Latency
		bars, err := plotter.NewBarChart(plotter.Values{last.P50, last.P99, last.Max}, vg.Points(12))
		if err != nil {
			return "", fmt.Errorf("plotting latencies: %w", err)
		}
		bars.Color, bars.LineStyle.Width, bars.XMin = colors[i%len(colors)], 0, 0
		bars.Offset = vg.Length(i) * vg.Points(14)
		chart.Add(bars)
		chart.Legend.Add(of.name, bars)
	}
	const roomForLegend = 1.4
	chart.Legend.Top, chart.Legend.Left = true, true
	chart.NominalX("p50", "p99", "max")
	chart.X.Min, chart.X.Max = -0.5, 2.5
	chart.Y.Max *= roomForLegend
	return svg(chart)
}

// line is a cost at several sizes.
type line struct {
	name   string
	points plotter.XYs
}

// costs plots cost against size.
func costs(of, unit string, lines []line) (string, error) {
	chart := newChart(of, unit)
	chart.Y.Min = 0
	chart.Legend.Top, chart.Legend.Left = true, true
	for i, one := range lines {
		drawn, points, err := plotter.NewLinePoints(one.points)
		if err != nil {
			return "", fmt.Errorf("plotting costs: %w", err)
		}
		drawn.Color, points.Color, points.Shape = colors[i%len(colors)], colors[i%len(colors)], draw.CircleGlyph{}
		chart.Add(drawn, points)
		chart.Legend.Add(one.name, drawn, points)
	}
	chart.Y.Max *= headroom
	return svg(chart)
}

func newChart(x, y string) *plot.Plot {
	chart := plot.New()
	chart.X.Label.Text, chart.Y.Label.Text = x, y
	chart.Add(plotter.NewGrid())
	return chart
}

// svg draws a plot, as a part of an HTML page.
func svg(chart *plot.Plot) (string, error) {
	canvas := vgsvg.New(width, height)
	chart.Draw(draw.New(canvas))
	drawn := &bytes.Buffer{}
	if _, err := canvas.WriteTo(drawn); err != nil {
		return "", fmt.Errorf("drawing a plot: %w", err)
	}
	// An XML declaration has no place within a page.
	_, element, _ := strings.Cut(drawn.String(), "<svg")
	return "<svg" + element, nil
}
