/** Shared fixtures of this module's tests. No fixture outlives its test. */
package io.weft.support;
