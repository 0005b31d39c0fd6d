/** What tests share that feed decoders with what no peer would send. Stateless. */
package io.weft.fuzz;
