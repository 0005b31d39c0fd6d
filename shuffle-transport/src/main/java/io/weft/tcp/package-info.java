/** Blocks over the network, on Spark's own transport. */
package io.weft.tcp;
