// SPDX-License-Identifier: MIT OR Apache-2.0
//! The store of a site: one PostgreSQL database for many hosts. Flows and samples are in a table with a partition for each day
//! (UTC), so that to forget a day is to drop a table; all other events, which are few, are in one table. Start at
//! [`PostgresStore`]; what is in the database is in `schema`.
//!
//! Each question has a deadline: a server that does not answer delays the caller, and is left; the next question connects
//! anew. What a transaction did until then is undone by the server.

mod address;
mod connect;
mod events;
mod migration;
mod partitions;
mod put;
mod rollups;
mod schema;

use super::{
    Batch, History, Migration, Put, Query, Record, Retention, Store, StoreError, StoreStatus,
    Watch, Width,
};
use connect::Cause;
use ipnet::IpNet;
use std::cell::RefCell;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_postgres::Client;

pub use address::ServerAddress;
pub use schema::SCHEMA_VERSION;

/// The roll-ups of a path's history are on hundreds of pages, which a disk brings sooner when they are asked for together.
const READ_AHEAD: &str = "SET effective_io_concurrency = 256";

/// The store. It connects when it is first asked. Its methods wait: call them on a thread that may.
#[derive(Debug)]
pub struct PostgresStore {
    address: ServerAddress,
    /// For one question or batch.
    deadline: Duration,
    /// Until it is dropped.
    runtime: Option<Runtime>,
    session: RefCell<Option<Session>>,
    /// What moves the bytes of the session.
    connections: RefCell<JoinSet<()>>,
}

/// A connection, and what is known of the database since it was made.
#[derive(Debug)]
struct Session {
    client: Client,
    /// None: there is no archive yet.
    version: Option<i64>,
    /// Days that have a partition.
    days: Vec<String>,
}

impl PostgresStore {
    /// The store in a database, whose server has so long for each question.
    ///
    /// # Errors
    /// When the process has no file descriptors left.
    pub fn at(address: ServerAddress, deadline: Duration) -> Result<PostgresStore, StoreError> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::File("the runtime".into(), error))?;
        Ok(PostgresStore {
            address,
            deadline,
            runtime: Some(runtime),
            session: RefCell::default(),
            connections: RefCell::default(),
        })
    }

    /// Brings the schema to a version, forward or back. Answers the version before, 0 where there was no archive. It has no
    /// deadline: `watch` hears each second how far it is, and answers whether to go on.
    ///
    /// # Errors
    /// When the server does not do it, this fatpath does not know the way, or `watch` ends it: nothing has changed then.
    pub fn migrate(&mut self, to: i64, watch: &mut Watch) -> Result<i64, StoreError> {
        if !(0..=SCHEMA_VERSION).contains(&to) {
            let why =
                format!("this fatpath knows schema versions 1 to {SCHEMA_VERSION}, and 0 for none");
            return Err(Cause::Local(why).of(&self.address, SCHEMA_VERSION));
        }
        let from = self.ask(async |session| Ok(session.version))?;
        let from = from.unwrap_or_default();
        let known = Migration::new(from, to);
        self.ask_within(Duration::MAX, async |session| {
            migration::run(&mut session.client, &self.address, known, watch).await?;
            session.version = Some(to).filter(|to| *to > 0);
            Ok(from)
        })
    }

    /// Asks the server, which has until the deadline.
    fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut Session) -> Result<T, Cause>,
    ) -> Result<T, StoreError> {
        self.ask_within(self.deadline, question)
    }

    /// Asks the server, connected anew where it is not. After a failure the connection is of no use.
    fn ask_within<T>(
        &self,
        deadline: Duration,
        question: impl AsyncFnOnce(&mut Session) -> Result<T, Cause>,
    ) -> Result<T, StoreError> {
        let mut kept = self.session.borrow_mut();
        let session = kept.take().filter(|session| !session.client.is_closed());
        let mut connections = self.connections.borrow_mut();
        let asked = async {
            let mut session = match session {
                Some(session) => session,
                None => Session::open(&self.address, &mut connections).await?,
            };
            let answer = question(&mut session).await?;
            Ok((session, answer))
        };
        // The timer is of the runtime.
        let limited = async { tokio::time::timeout(deadline, asked).await };
        let runtime = self.runtime.as_ref().expect("it is there until the drop");
        let answered = runtime.block_on(limited);
        match answered.unwrap_or(Err(Cause::Late(deadline))) {
            Ok((session, answer)) => {
                *kept = Some(session);
                Ok(answer)
            }
            Err(cause) => {
                // Nothing moves between two questions: the server would wait with its locks for the end of a transaction.
                runtime.block_on(connections.shutdown());
                Err(cause.of(&self.address, SCHEMA_VERSION))
            }
        }
    }
}

/// A name that is being looked up is not waited for: the resolver has no deadline.
impl Drop for PostgresStore {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn server_now_us(client: &Client) -> Result<i64, Cause> {
    let sql = "SELECT (extract(epoch FROM now()) * 1000000)::bigint";
    Ok(client.query_one(sql, &[]).await?.try_get(0)?)
}

impl Session {
    async fn open(
        address: &ServerAddress,
        connections: &mut JoinSet<()>,
    ) -> Result<Session, Cause> {
        let client = connect::connect(address, connections).await?;
        // A server without it reads one page after the other.
        let _ = client.batch_execute(READ_AHEAD).await;
        let version = schema::version(&client).await?;
        let days = match version {
            Some(_) => partitions::days(&client).await?,
            None => Vec::new(),
        };
        Ok(Session {
            client,
            version,
            days,
        })
    }

    /// Whether there is something to read. An older schema is read as it was when the connection was made.
    fn has_events(&self) -> Result<bool, Cause> {
        match self.version {
            Some(found) if found > SCHEMA_VERSION => Err(Cause::Version(found)),
            found => Ok(found.is_some()),
        }
    }
}

impl Store for PostgresStore {
    /// An older schema is brought forward.
    fn prepare(&mut self, watch: &mut Watch) -> Result<(), StoreError> {
        match self.ask(async |session| Ok(session.version))? {
            Some(SCHEMA_VERSION) => Ok(()),
            Some(found) if found > SCHEMA_VERSION => {
                Err(Cause::Version(found).of(&self.address, SCHEMA_VERSION))
            }
            _ => self.migrate(SCHEMA_VERSION, watch).map(drop),
        }
    }

    fn put(&mut self, batch: &Batch) -> Result<Put, StoreError> {
        self.prepare(&mut |_| true)?;
        self.ask(async |session| {
            if schema::table_of(batch.kind) == schema::RECORD {
                let times_us = batch.events.iter().map(|(_, event)| event.time_us);
                partitions::make(session, times_us).await?;
            }
            put::put(&mut session.client, batch).await
        })
    }

    fn query(&self, query: &Query) -> Result<Vec<Record>, StoreError> {
        self.ask(async |session| match session.has_events()? {
            true => events::query(session, query).await,
            false => Ok(Vec::new()),
        })
    }

    fn history(
        &self,
        prefix: IpNet,
        width: Width,
        since_us: i64,
        until_us: i64,
    ) -> Result<History, StoreError> {
        self.ask(async |session| match session.has_events()? {
            true => rollups::history(&session.client, prefix, width, (since_us, until_us)).await,
            false => Ok(History::new()),
        })
    }

    fn retain(&mut self, retention: Retention, now_us: i64) -> Result<(), StoreError> {
        self.prepare(&mut |_| true)?;
        self.ask(async |session| {
            // A host whose clock is ahead removes nothing of the others.
            let now_us = now_us.min(server_now_us(&session.client).await?);
            rollups::remove_old(&mut session.client, now_us).await?;
            partitions::retain(session, retention.days, now_us).await
        })
    }

    fn status(&self) -> Result<StoreStatus, StoreError> {
        self.ask(async |session| match session.has_events()? {
            true => partitions::status(session).await,
            false => Ok(StoreStatus::default()),
        })
    }
}
