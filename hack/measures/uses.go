package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// graph has true at [a][b] where file a uses something that file b declares.
type graph [][]bool

// usesBetween finds the uses between files of one package: of functions, types, methods, fields, variables, constants.
func usesBetween(files []*ast.File, info *types.Info) graph {
	uses := make(graph, len(files))
	for i := range uses {
		uses[i] = make([]bool, len(files))
	}
	fileOf := func(at token.Pos) int {
		return slices.IndexFunc(files, func(file *ast.File) bool { return file.FileStart <= at && at < file.FileEnd })
	}
	for name, used := range info.Uses {
		if from, to := fileOf(name.Pos()), fileOf(used.Pos()); from >= 0 && to >= 0 && from != to {
			uses[from][to] = true
		}
	}
	return uses
}

// cycles is how many of the uses run back up, in percent, rounded up. A single one in a small package counts as none:
// a percentage of a few uses says little.
func cycles(uses graph) int {
	all := 0
	for _, from := range uses {
		for _, used := range from {
			if used {
				all++
			}
		}
	}
	back := uses.backward(uses.order())
	if back <= 1 {
		return 0
	}
	return (100*back + all - 1) / all
}

// backward counts the uses that run back up in an order of files from top to bottom: a file uses one above it.
func (g graph) backward(order []int) int {
	back := 0
	for i, below := range order {
		for _, above := range order[:i] {
			if g[below][above] {
				back++
			}
		}
	}
	return back
}

// order orders files so that few uses run back up: greedily at first (Eades, Lin and Smyth), which leaves none where
// there are no cycles, and then by moving one file at a time for as long as that helps.
func (g graph) order() []int {
	order := g.greedy()
	for best := g.backward(order); ; {
		before := best
		for from := range order {
			for to := range order {
				moved := slices.Insert(slices.Delete(slices.Clone(order), from, from+1), to, order[from])
				if back := g.backward(moved); back < best {
					order, best = moved, back
				}
			}
		}
		if best == before {
			return order
		}
	}
}

// greedy puts files that use no other to the bottom; else the one that uses most and is used least to the top.
func (g graph) greedy() []int {
	var top, bottom, left []int
	for i := range g {
		left = append(left, i)
	}
	for len(left) > 0 {
		next, most, sink := 0, -len(g), false
		for i, file := range left {
			out, in := 0, 0
			for _, other := range left {
				if g[file][other] {
					out++
				}
				if g[other][file] {
					in++
				}
			}
			if in == 0 {
				out += len(g)
			}
			if sink = out == 0; sink {
				next = i
				break
			}
			if out-in > most {
				next, most = i, out-in
			}
		}
		if sink {
			bottom = append(bottom, left[next])
		} else {
			top = append(top, left[next])
		}
		left = slices.Delete(left, next, next+1)
	}
	slices.Reverse(bottom)
	return append(top, bottom...)
}
