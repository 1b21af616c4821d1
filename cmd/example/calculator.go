package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/talaria-go/mcp"
)

// CalculateIn is one operation on two numbers.
type CalculateIn struct {
	Operation string  `json:"operation" validate:"oneof=add subtract multiply divide modulo power" jsonschema_description:"what to do with a and b"`
	A         float64 `json:"a" jsonschema_description:"left operand"`
	B         float64 `json:"b" jsonschema_description:"right operand"`
}

// Calculation is an operation with its result.
type Calculation struct {
	Expression string  `json:"expression" jsonschema_description:"the operation as a formula"`
	Result     float64 `json:"result"`
}

func calculatorTool() mcp.Component {
	return mcp.Tool("calculate", calculate, mcp.Title("Calculator"),
		mcp.Doc("Calculates with two numbers, in 64-bit floating point"),
		mcp.ReadOnly(), mcp.Idempotent(), mcp.OpenWorld(false))
}

// operations has what each value of CalculateIn.Operation means.
var operations = map[string]struct {
	symbol string
	result func(a, b float64) float64
}{
	"add":      {"+", func(a, b float64) float64 { return a + b }},
	"subtract": {"-", func(a, b float64) float64 { return a - b }},
	"multiply": {"*", func(a, b float64) float64 { return a * b }},
	"divide":   {"/", func(a, b float64) float64 { return a / b }},
	"modulo":   {"mod", math.Mod},
	"power":    {"^", math.Pow},
}

// calculate returns its errors as they are: they tell the model what to do
// differently.
func calculate(_ *mcp.Frame, in CalculateIn) (Calculation, error) {
	op := operations[in.Operation]
	out := Calculation{fmt.Sprintf("%v %s %v", in.A, op.symbol, in.B), op.result(in.A, in.B)}
	switch {
	case in.B == 0 && (in.Operation == "divide" || in.Operation == "modulo"):
		return out, errors.New("division by zero: b must not be 0")
	case math.IsNaN(out.Result):
		return out, fmt.Errorf("%s is not a real number", out.Expression)
	case math.IsInf(out.Result, 0):
		return out, fmt.Errorf("%s is beyond the range of 64-bit floating point", out.Expression)
	}
	return out, nil
}
