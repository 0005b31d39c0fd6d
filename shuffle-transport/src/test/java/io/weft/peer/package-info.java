/** Tests of the values that executors know of each other. */
package io.weft.peer;
