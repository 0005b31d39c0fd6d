/** Shared code of tests that feed damaged messages to decoders. Stateless. */
package io.weft.fuzz;
