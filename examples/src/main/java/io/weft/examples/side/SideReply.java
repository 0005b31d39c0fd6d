package io.weft.examples.side;

import java.io.Serializable;

/**
 * What a side answers to a task.
 *
 * @param value the result, null if it failed
 * @param failure the stack trace, null if it did not fail
 */
record SideReply(Serializable value, String failure) implements Serializable {}
