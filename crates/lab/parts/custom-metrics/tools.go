//go:build tools

package tools

import (
	_ "sigs.k8s.io/custom-metrics-apiserver/test-adapter"
)
