/** Statistics of repeated runs, and how fast this machine copies memory. Nothing to free. */
package io.weft.examples.measure;
