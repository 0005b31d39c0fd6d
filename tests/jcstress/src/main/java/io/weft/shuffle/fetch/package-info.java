/** Stress tests of the state that threads share in this package. jcstress creates each state. */
package io.weft.shuffle.fetch;
