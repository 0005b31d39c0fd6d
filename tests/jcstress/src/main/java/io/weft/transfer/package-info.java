/** Stress tests of what this package shares between threads. Each state is made by jcstress. */
package io.weft.transfer;
