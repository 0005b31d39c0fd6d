/** Compares adaptive plans with and without Weft. */
package io.weft.examples.plans;
