/**
 * Spark applications that system tests submit to clusters in separate JVMs. Each reports its
 * progress to its test through {@link io.weft.tests.application.Stage}.
 */
package io.weft.tests.application;
