package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// planned is one scenario over one transport at one revision.
type planned struct{ transport, revision, scenario string }

// readRows reads a file of words: blank lines and what follows # are left
// out, and each row needs at least n words.
func readRows(name string, n int) ([][]string, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var rows [][]string
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if len(words) < n {
			return nil, fmt.Errorf("%s:%d: want at least %d words, got %d", name, number, n, len(words))
		}
		rows = append(rows, words)
	}
	return rows, lines.Err()
}

// readPlan reads rows of revision, scenario and transports.
func readPlan(name, only string) ([]planned, error) {
	rows, err := readRows(name, 3)
	if err != nil {
		return nil, err
	}
	var runs []planned
	for _, row := range rows {
		if !strings.Contains(row[1], only) {
			continue
		}
		for _, transport := range row[2:] {
			runs = append(runs, planned{transport, row[0], row[1]})
		}
	}
	return runs, nil
}

// readExceptions reads rows of transport, revision, scenario and check.
func readExceptions(name string) (map[planned][]string, error) {
	exceptions := map[planned][]string{}
	if name == "" {
		return exceptions, nil
	}
	rows, err := readRows(name, 4)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		key := planned{row[0], row[1], row[2]}
		exceptions[key] = append(exceptions[key], row[3])
	}
	return exceptions, nil
}
