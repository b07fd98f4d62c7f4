//! Where the executor's items come from: the compiler itself, or a channel that a worker fills.

use crate::RunError;
use crate::control::RunOptions;
use crate::engine::{Engine, compile_next};
use firstlight_backend::channel::BoundedChannel;
use firstlight_backend::pool::WorkerSeat;
use firstlight_backend::{BackendStorage, Chunk, ChunkMaker, HostStorage, Loc, Pool};
use firstlight_plan::{CompiledNode, Compiler, PlanCtx, SegmentEnd, SegmentKey, Snapshot};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the executor is given, in order.
#[derive(Debug)]
pub(crate) enum Item {
    /// A step, and those of its chunks that were made ahead of it.
    Step(Arc<CompiledNode>, Vec<(u32, Chunk)>),
    /// The segment ends; where compiling goes on, if it does.
    End(SegmentEnd, Option<Snapshot>),
}

/// Gives items in order.
pub(crate) trait Source {
    /// The next item.
    fn next(&mut self) -> Result<Item, RunError>;
    /// Answers an awaited key.
    fn answer(&mut self, key: &SegmentKey) -> Result<(), RunError>;
}

/// Compiles each item when it is asked for.
#[derive(Debug)]
pub(crate) struct InlineSource<'a> {
    pub(crate) compiler: Compiler,
    pub(crate) ctx: PlanCtx<'a>,
    pub(crate) options: &'a RunOptions<'a>,
}

impl Source for InlineSource<'_> {
    fn next(&mut self) -> Result<Item, RunError> {
        compile_next(&mut self.compiler, &self.ctx, Ahead::Nothing, self.options)
    }

    fn answer(&mut self, key: &SegmentKey) -> Result<(), RunError> {
        Ok(self.compiler.resume(key)?)
    }
}

/// Items that the compiler may be ahead of the executor.
const MAX_AHEAD_ITEMS: usize = 64;
/// Bytes of weights that they may need.
const MAX_AHEAD_BYTES: usize = 64 << 20;

/// The awaited key, handed from the executor to the compiler.
#[derive(Default)]
struct Mailbox {
    key: Mutex<Option<SegmentKey>>,
    full: AtomicBool,
}

struct ChannelSource<'a> {
    channel: &'a BoundedChannel<Result<Item, RunError>>,
    mailbox: &'a Mailbox,
    pool: &'a Pool,
}

impl Source for ChannelSource<'_> {
    fn next(&mut self) -> Result<Item, RunError> {
        let ended = || RunError::Pool("the compiler ended without a result".to_owned());
        self.channel.pop(self.pool).ok_or_else(ended)?
    }

    fn answer(&mut self, key: &SegmentKey) -> Result<(), RunError> {
        *self.mailbox.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(key.clone());
        // Release: the key is there before the flag is seen.
        self.mailbox.full.store(true, Ordering::Release);
        self.pool.notify();
        Ok(())
    }
}

/// What is done for a step besides compiling it, ahead of its run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ahead<'a> {
    /// The executor waits for the step: its kernel finds for itself what it needs, on all threads.
    Nothing,
    /// Weights are paged in.
    Weights,
    /// Weights are paged in and memory is made.
    All(&'a ChunkMaker),
}

impl Ahead<'_> {
    /// Gets a step ready; the chunks that were made. What is refused here is asked for again by the executor, whose error names
    /// the step.
    pub(crate) fn get_ready(self, step: &CompiledNode) -> Vec<(u32, Chunk)> {
        match self {
            Ahead::Nothing => vec![],
            Ahead::Weights => {
                page_in(step);
                vec![]
            }
            Ahead::All(maker) => {
                page_in(step);
                let make = |&(index, n_bytes): &(u32, usize)| Some((index, maker.make(n_bytes).ok()?));
                step.chunks.iter().filter_map(make).collect()
            }
        }
    }
}

/// Has the weights of a step at hand before it runs. One that does less arithmetic than it has weights reads but a few of
/// them.
fn page_in(step: &CompiledNode) {
    for loc in step.inputs.iter().flatten() {
        if let Loc::Const(storage) = loc
            && let BackendStorage::Host(HostStorage::Bytes(bytes)) = &**storage
            && step.n_operations >= bytes.len() as u64 / 8
        {
            bytes.page_in();
        }
    }
}

/// Compiles on a worker while `consume` runs here; both have ended when it returns.
pub(crate) fn run_pipelined<T>(
    engine: &Engine<'_>,
    seat: WorkerSeat<'_>,
    compiler: Compiler,
    maker: Option<ChunkMaker>,
    consume: impl FnOnce(&mut dyn Source) -> Result<T, RunError>,
) -> Result<T, RunError> {
    let channel = BoundedChannel::new(MAX_AHEAD_ITEMS, MAX_AHEAD_BYTES);
    let mailbox = Mailbox::default();
    let ctx = engine.plan_ctx();
    let mut compiler = Some(compiler);
    let mut job = || {
        // Closes the channel when the job ends, however it ends, so that the executor never waits for nothing.
        let _closed = channel.close_on_drop();
        if let Some(compiler) = compiler.take() {
            compile_all(compiler, maker.as_ref(), &ctx, engine, &channel, &mailbox);
        }
    };
    let main = || {
        let _closed = channel.close_on_drop();
        consume(&mut ChannelSource { channel: &channel, mailbox: &mailbox, pool: engine.pool })
    };
    let (result, job) = seat.run(&mut job, main);
    match (result, job) {
        (Ok(value), Ok(())) => Ok(value),
        (Err(error), Ok(())) => Err(error),
        (_, Err(panic)) => Err(RunError::Pool(panic.to_string())),
    }
}

/// The compiler's side: pushes items until the plan is done, it fails, or the executor is gone.
fn compile_all(
    mut compiler: Compiler,
    maker: Option<&ChunkMaker>,
    ctx: &PlanCtx<'_>,
    engine: &Engine<'_>,
    channel: &BoundedChannel<Result<Item, RunError>>,
    mailbox: &Mailbox,
) {
    loop {
        let ahead = match maker {
            _ if channel.is_empty() => Ahead::Nothing,
            Some(maker) => Ahead::All(maker),
            None => Ahead::Weights,
        };
        let item = compile_next(&mut compiler, ctx, ahead, engine.options);
        let (done, awaits) = match &item {
            Ok(Item::Step(..)) => (false, false),
            Ok(Item::End(SegmentEnd::Await(_), _)) => (false, true),
            Ok(Item::End(SegmentEnd::Done(_), _)) | Err(_) => (true, false),
        };
        let n_bytes = item.as_ref().map_or(0, weight_bytes);
        if channel.push(item, n_bytes, engine.pool).is_err() || done {
            return;
        }
        if awaits {
            engine.pool.help_until(&|| mailbox.full.load(Ordering::Acquire) || channel.is_closed());
            mailbox.full.store(false, Ordering::Relaxed);
            let key = mailbox.key.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(key) = key else { return };
            if let Err(error) = compiler.resume(&key) {
                let _ = channel.push(Err(error.into()), 0, engine.pool);
                return;
            }
        }
    }
}

fn weight_bytes(item: &Item) -> usize {
    match item {
        Item::Step(step, _) => {
            let inputs = step.inputs.iter().flatten();
            inputs.map(|loc| if let Loc::Const(bytes) = loc { bytes.len() } else { 0 }).sum()
        }
        Item::End(..) => 0,
    }
}
