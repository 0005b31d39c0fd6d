/**
 * Spark applications that system tests submit to clusters in JVMs of their own. Each tells its test
 * how far it is through {@link io.weft.tests.application.Stage}.
 */
package io.weft.tests.application;
