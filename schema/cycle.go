package schema

// cycles reports members that would each have to be greater than the other.
func (c *compiler) cycles(sh *shape) {
	greater := map[int][]int{} // member → members that it is not less than
	type pair struct {
		high, low int
		rule      *crossRule
	}
	var strict []pair
	for i := range sh.cross {
		k := &sh.cross[i]
		if k.root {
			continue
		}
		p := pair{k.field, k.other[0], k}
		switch k.op {
		case "lt", "lte":
			p.high, p.low = p.low, p.high
		case "gt", "gte":
		default:
			continue
		}
		greater[p.high] = append(greater[p.high], p.low)
		if k.op == "gt" || k.op == "lt" {
			strict = append(strict, p)
		}
	}
	for _, p := range strict {
		if reaches(greater, p.low, p.high, map[int]bool{}) {
			f := &sh.fields[p.rule.field]
			c.where.field, c.where.json = f.goName, f.name
			c.report(`validate:"`+p.rule.tag+`"`, "this and the other comparisons can never both hold: they go round in a circle", "remove one of them")
			return
		}
	}
}

func reaches(edges map[int][]int, from, to int, seen map[int]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	for _, next := range edges[from] {
		if !seen[next] && reaches(edges, next, to, seen) {
			return true
		}
	}
	return false
}
