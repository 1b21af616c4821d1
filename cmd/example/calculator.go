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

var symbols = map[string]string{
	"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "mod", "power": "^",
}

// calculate returns its errors as they are: they tell the model what to do
// differently.
func calculate(_ *mcp.Frame, in CalculateIn) (Calculation, error) {
	out := Calculation{Expression: fmt.Sprintf("%v %s %v", in.A, symbols[in.Operation], in.B)}
	switch in.Operation {
	case "add":
		out.Result = in.A + in.B
	case "subtract":
		out.Result = in.A - in.B
	case "multiply":
		out.Result = in.A * in.B
	case "power":
		out.Result = math.Pow(in.A, in.B)
	case "divide", "modulo":
		if in.B == 0 {
			return out, errors.New("division by zero: b must not be 0")
		}
		if in.Operation == "divide" {
			out.Result = in.A / in.B
		} else {
			out.Result = math.Mod(in.A, in.B)
		}
	}
	switch {
	case math.IsNaN(out.Result):
		return out, fmt.Errorf("%s is not a real number", out.Expression)
	case math.IsInf(out.Result, 0):
		return out, fmt.Errorf("%s is beyond the range of 64-bit floating point", out.Expression)
	}
	return out, nil
}
