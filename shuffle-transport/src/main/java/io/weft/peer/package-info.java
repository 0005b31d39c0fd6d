/** Other executors as this one sees them: their addresses and the way to their blocks. */
package io.weft.peer;
